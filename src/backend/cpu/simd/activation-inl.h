// Activations of float vectors, within 4 ulp wherever the result is a normal number. Included once per
// instruction set.
#if defined(SLUICE_BACKEND_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ACTIVATION_INL_H_
#undef SLUICE_BACKEND_CPU_ACTIVATION_INL_H_
#else
#define SLUICE_BACKEND_CPU_ACTIVATION_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

// exp(x) for x <= 0, -inf included.
HWY_INLINE FloatVec exp_of_negative(FloatTag d, FloatVec x) {
  return hn::Exp(d, x);
}

// 1 / (1 + exp(-x)). Only exp(-|x|) is computed, which never overflows, and small results keep full
// precision.
HWY_INLINE FloatVec sigmoid(FloatTag d, FloatVec x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = exp_of_negative(d, hn::Neg(hn::Abs(x)));
  const auto s = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  return hn::IfThenElse(hn::IsNaN(x), x, s);  // Highway's Exp maps NaN to 0
}

// x * sigmoid(x)
HWY_INLINE FloatVec silu(FloatTag d, FloatVec x) {
  return hn::Mul(x, sigmoid(d, x));
}

// gate = silu(gate) * up, for whole vectors.
HWY_INLINE void silu_times(float* HWY_RESTRICT gate, const float* HWY_RESTRICT up, std::int64_t count) {
  const FloatTag d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::Mul(silu(d, hn::LoadU(d, gate + i)), hn::LoadU(d, up + i)), d, gate + i);
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
