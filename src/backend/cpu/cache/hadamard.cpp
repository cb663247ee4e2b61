// forward: H(signs * x)/sqrt(D); inverse: signs * (H x)/sqrt(D), over the last dimension. Threaded over rows;
// a row is transformed in a worker's scratch, so out may be x. D log2(D) additions per row, in F32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cache/hadamard.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>

#include "backend/cpu/cache/hadamard-inl.h"
#include "backend/cpu/cache/signs.h"
#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/rows-inl.h"
#include "sluice/ops/cache/hadamard.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::cache::HWY_NAMESPACE {

using namespace pointwise::HWY_NAMESPACE;
using namespace simd::HWY_NAMESPACE;

void hadamard_rows(Context& context, const ops::Hadamard& op) {
  const std::size_t width = op.x.shape.back();
  const auto factor = static_cast<float>(1 / std::sqrt(width));
  const float* signs =
      read_signs(op.signs, width, reinterpret_cast<float*>(context.shared_scratch(width * sizeof(float))));
  context.pool().parallel_for(
      0, row_count(op.x.shape), rows_per_task(width),
      [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
        auto* row = reinterpret_cast<float*>(context.worker_scratch(worker, width * sizeof(float)));
        for (std::int64_t r = begin; r < end; ++r) {
          load_row(row_at(op.x, r), op.x.dtype, width, row);
          if (op.inverse)
            rotate_back(row, width, factor, signs);
          else
            rotate(row, width, factor, signs);
          store_row(row, width, row_at(op.out, r), op.out.dtype);
        }
      });
}

}  // namespace sluice::backend::cpu::cache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::cache {

HWY_EXPORT(hadamard_rows);

}  // namespace sluice::backend::cpu::cache

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::Hadamard& op) {
  SLUICE_DISPATCH(context, hadamard_rows)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
