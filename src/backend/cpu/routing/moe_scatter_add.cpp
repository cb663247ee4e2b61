// sum[token_idx[i]] += weights[i] * bucket_out[i]. Threaded over columns: every thread processes the whole
// bucket in order, so a repeated token is summed in bucket order and no two threads write one element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/routing/moe_scatter_add.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/accumulate-inl.h"
#include "base/integer_cast.h"
#include "sluice/ops/routing/moe_scatter_add.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::routing::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

template <class Sum>
void scatter_columns(Context& context, const ops::MoeScatterAdd& op) {
  const std::int64_t bucket = op.bucket_out.dim(0);
  const std::int64_t width = op.sum.dim(1);
  const auto* token_idx = static_cast<const std::int32_t*>(op.token_idx.data);
  const auto* weights = static_cast<const float*>(op.weights.data);
  // Multiples of 64 columns, so that boundaries are between vectors and between cache lines.
  const std::int64_t grain = 64 * (1 + 256 / bucket);
  context.pool().parallel_for(0, width, grain, [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
    for (std::int64_t b = 0; b < bucket; ++b) {
      auto* sum = static_cast<Sum*>(row_at(op.sum, token_idx[b]));
      accumulate(row_at(op.bucket_out, b), op.bucket_out.dtype, begin, to_size(end - begin), weights[b],
                 sum + begin);
    }
  });
}

void moe_scatter_add(Context& context, const ops::MoeScatterAdd& op) {
  if (op.sum.dtype == ops::DType::f32)
    scatter_columns<float>(context, op);
  else
    scatter_columns<ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::routing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::routing {

HWY_EXPORT(moe_scatter_add);

}  // namespace sluice::backend::cpu::routing

namespace sluice::backend::cpu {

using namespace routing;

template <>
void run(Context& context, const ops::MoeScatterAdd& op) {
  SLUICE_DISPATCH(context, moe_scatter_add)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
