// The exponential of non-positive numbers, for softmax. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_EXPONENTIAL_INL_H_
#undef SLUICE_BACKEND_CPU_EXPONENTIAL_INL_H_
#else
#define SLUICE_BACKEND_CPU_EXPONENTIAL_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

// e^x for x <= 0 with an error of one or two ulp; 0 where the result would be subnormal; unspecified for NaN.
// Takes half the work of an exponential for all x.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exponential_below_one(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  // Adding it to a small number leaves the nearest integer in the lowest bits.
  const auto magic = hn::Set(d, 12582912.0F);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), magic);
  const auto n = hn::Sub(shifted, magic);
  // x - n ln 2, with ln 2 as the sum of two constants; n times the first one is exact.
  const auto r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x));
  auto p = hn::Set(d, 1.9875691500e-4F);
  for (const float c : {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 0.5F})
    p = hn::MulAdd(p, r, hn::Set(d, c));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
  const auto scaled =
      hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -87.0F)), scaled);
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
