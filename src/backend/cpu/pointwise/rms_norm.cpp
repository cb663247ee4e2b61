// out = x * rsqrt(mean(x^2) + eps) * weight, over the last dimension. Threaded over rows; a row is read
// twice, the second time from cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/rms_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "sluice/ops/pointwise/rms_norm.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

template <class T>
void rms_norm_rows(Context& context, const ops::RmsNorm& op) {
  const std::size_t width = op.x.shape.back();
  const float* weight = op.weight.present() ? widen_weight(context, op.weight) : nullptr;
  context.pool().parallel_for(0, row_count(op.x.shape), rows_per_task(width),
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t r = begin; r < end; ++r)
                                  rms_norm_row(static_cast<const T*>(row_at(op.x, r)), width, op.eps, weight,
                                               static_cast<T*>(row_at(op.out, r)));
                              });
}

void rms_norm(Context& context, const ops::RmsNorm& op) {
  if (op.x.dtype == ops::DType::f32)
    rms_norm_rows<float>(context, op);
  else
    rms_norm_rows<ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(rms_norm);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::RmsNorm& op) {
  SLUICE_DISPATCH(context, rms_norm)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
