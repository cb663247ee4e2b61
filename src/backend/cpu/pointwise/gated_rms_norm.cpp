// out = x * rsqrt(mean(x^2) + eps) * weight * silu(z), over the last dimension (per head). Threaded over
// heads of tokens; x is read twice, the second time from cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/gated_rms_norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "backend/cpu/pointwise/norm-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/activation-inl.h"
#include "sluice/ops/pointwise/gated_rms_norm.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

template <class X, class Z>
HWY_INLINE void gated_row(const X* x, const Z* z, std::size_t count, float factor, const float* weight,
                          X* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto f = hn::Set(d, factor);
  const auto gated = [&](FloatVec value, FloatVec gate, FloatVec w)
                         HWY_ATTR { return hn::Mul(hn::Mul(hn::Mul(value, f), w), silu(d, gate)); };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    store(d, gated(load(d, x + i), load(d, z + i), hn::LoadU(d, weight + i)), out + i);
  if (i == count) return;
  X padded_x[hn::MaxLanes(FloatTag())] = {};
  Z padded_z[hn::MaxLanes(FloatTag())] = {};
  float padded_weight[hn::MaxLanes(FloatTag())] = {};
  std::copy(x + i, x + count, padded_x);
  std::copy(z + i, z + count, padded_z);
  std::copy(weight + i, weight + count, padded_weight);
  store(d, gated(load(d, padded_x), load(d, padded_z), hn::LoadU(d, padded_weight)), padded_x);
  std::copy(padded_x, padded_x + (count - i), out + i);
}

template <class X, class Z>
void gated_rms_norm_rows(Context& context, const ops::GatedRmsNorm& op) {
  const std::size_t width = op.x.shape.back();
  const float* weight = widen_weight(context, op.weight);
  context.pool().parallel_for(0, row_count(op.x.shape), rows_per_task(width),
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t r = begin; r < end; ++r) {
                                  const auto* x = static_cast<const X*>(row_at(op.x, r));
                                  gated_row(x, static_cast<const Z*>(row_at(op.z, r)), width,
                                            rms_factor(sum_of_squares(x, width), width, op.eps), weight,
                                            static_cast<X*>(row_at(op.out, r)));
                                }
                              });
}

void gated_rms_norm(Context& context, const ops::GatedRmsNorm& op) {
  const bool wide_x = op.x.dtype == ops::DType::f32;
  const bool wide_z = op.z.dtype == ops::DType::f32;
  if (wide_x && wide_z)
    gated_rms_norm_rows<float, float>(context, op);
  else if (wide_x)
    gated_rms_norm_rows<float, ops::BFloat16>(context, op);
  else if (wide_z)
    gated_rms_norm_rows<ops::BFloat16, float>(context, op);
  else
    gated_rms_norm_rows<ops::BFloat16, ops::BFloat16>(context, op);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(gated_rms_norm);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::GatedRmsNorm& op) {
  SLUICE_DISPATCH(context, gated_rms_norm)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
