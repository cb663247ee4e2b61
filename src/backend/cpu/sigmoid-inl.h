// Sigmoid and SiLU to a few units in the last place over the whole range. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_SIGMOID_INL_H_
#undef SLUICE_BACKEND_CPU_SIGMOID_INL_H_
#else
#define SLUICE_BACKEND_CPU_SIGMOID_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include "backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

// With e = exp(-|x|) nothing overflows, and small values keep their relative precision.
HWY_INLINE FloatVec sigmoid(FloatTag d, FloatVec x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

HWY_INLINE FloatVec silu(FloatTag d, FloatVec x) {
  return hn::Mul(x, sigmoid(d, x));
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
