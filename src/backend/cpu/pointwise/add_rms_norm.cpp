// residual += delta; out = residual * rsqrt(mean(residual^2) + eps) * weight. Threaded over rows. The sum is
// stored first and the norm reads it back from cache, so the bits are those of add followed by rms_norm.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/add_rms_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "sluice/ops/pointwise/add_rms_norm.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

template <class R, class D>
HWY_INLINE void add_to_row(R* residual, const D* delta, std::size_t count) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    store(d, hn::Add(load(d, residual + i), load(d, delta + i)), residual + i);
  for (; i < count; ++i) store_scalar(ops::to_float(residual[i]) + ops::to_float(delta[i]), residual + i);
}

template <class R, class D>
void add_rms_norm_rows(Context& context, const ops::AddRmsNorm& op) {
  const std::size_t width = op.residual.dim(1);
  const float* weight = widen_weight(context, op.weight);
  context.pool().parallel_for(
      0, op.residual.dim(0), rows_per_task(width), [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
        for (std::int64_t t = begin; t < end; ++t) {
          auto* residual = static_cast<R*>(row_at(op.residual, t));
          add_to_row(residual, static_cast<const D*>(row_at(op.delta, t)), width);
          rms_norm_row(residual, width, op.eps, weight, static_cast<R*>(row_at(op.out, t)));
        }
      });
}

void add_rms_norm(Context& context, const ops::AddRmsNorm& op) {
  const bool wide_residual = op.residual.dtype == ops::DType::f32;
  const bool wide_delta = op.delta.dtype == ops::DType::f32;
  if (wide_residual && wide_delta)
    add_rms_norm_rows<float, float>(context, op);
  else if (wide_residual)
    add_rms_norm_rows<float, ops::BFloat16>(context, op);
  else if (wide_delta)
    add_rms_norm_rows<ops::BFloat16, float>(context, op);
  else
    add_rms_norm_rows<ops::BFloat16, ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(add_rms_norm);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::AddRmsNorm& op) {
  SLUICE_DISPATCH(context, add_rms_norm)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
