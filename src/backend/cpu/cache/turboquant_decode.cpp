// level[code] * norm/sqrt(D), then the inverse rotation unless `rotated`. Threaded over vectors; F32
// arithmetic. Reads D*bits/8 + 4 bytes per vector and writes D elements.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cache/turboquant_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>

#include "backend/cpu/attention/packed/levels-inl.h"
#include "backend/cpu/cache/hadamard-inl.h"
#include "backend/cpu/cache/signs.h"
#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "sluice/ops/cache/turboquant_decode.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::cache::HWY_NAMESPACE {

using namespace attention::packed::HWY_NAMESPACE;
using namespace pointwise::HWY_NAMESPACE;

void turboquant_decode(Context& context, const ops::TurboquantDecode& op) {
  const std::int64_t heads = op.out.dim(1);
  const std::size_t width = op.out.dim(2);
  const auto factor = static_cast<float>(1 / std::sqrt(width));
  const float* signs =
      read_signs(op.signs, width, reinterpret_cast<float*>(context.shared_scratch(width * sizeof(float))));
  const auto task = [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
    auto* row = reinterpret_cast<float*>(context.worker_scratch(worker, width * sizeof(float)));
    with_level_reader(op.bits, [&](const auto& levels) HWY_ATTR {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t t = i / heads;
        const std::int64_t h = i % heads;
        levels.read(static_cast<const std::uint8_t*>(op.codes.data) + h * op.codes.strides[0] +
                        t * op.codes.strides[1],
                    width, row);
        const float norm =
            static_cast<const float*>(op.norms.data)[h * op.norms.strides[0] + t * op.norms.strides[1]];
        scale_signed(row, width, norm * factor, nullptr);
        if (!op.rotated) rotate_back(row, width, factor, signs);
        store_row(row, width, row_at(op.out, i), op.out.dtype);
      }
    });
  };
  context.pool().parallel_for(0, op.out.dim(0) * heads, rows_per_task(width), task);
}

}  // namespace sluice::backend::cpu::cache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::cache {

HWY_EXPORT(turboquant_decode);

}  // namespace sluice::backend::cpu::cache

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::TurboquantDecode& op) {
  SLUICE_DISPATCH(context, turboquant_decode)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
