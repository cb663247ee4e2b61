// Adding the lanes of several vectors at once. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_LANE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_LANE_SUMS_INL_H_
#undef SLUICE_BACKEND_CPU_LANE_SUMS_INL_H_
#else
#define SLUICE_BACKEND_CPU_LANE_SUMS_INL_H_
#endif

#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

// Adds the 128-bit blocks of a vector.
template <class D>
HWY_INLINE hn::Vec<hn::Full128<float>> sum_blocks(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Adds the lanes of each of four vectors; returns the four sums in one vector.
HWY_INLINE hn::Vec<hn::Full128<float>> sum_lanes(FloatTag d, FloatVec a, FloatVec b, FloatVec c, FloatVec e) {
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const hn::Repartition<double, FloatTag> pairs;
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  return sum_blocks(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)));
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
