// The Walsh-Hadamard transform of rows in memory and the rotations built on it. Included once per instruction
// set.
//
// Stage h maps every pair (a, b) at distance h to (a+b, a-b); h grows from 1 to D/2. Stages narrower than a
// vector run in registers, by a permutation and one multiply-add with the exact factors 1 and -1; the others
// are done two at a time, so a row of D passes through memory about log4(D) times.
#if defined(SLUICE_BACKEND_CPU_HADAMARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_HADAMARD_INL_H_
#undef SLUICE_BACKEND_CPU_HADAMARD_INL_H_
#else
#define SLUICE_BACKEND_CPU_HADAMARD_INL_H_
#endif

#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::cache::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// Stage kHalf, within a vector.
template <std::size_t kHalf, class D, class V>
HWY_INLINE V butterfly_lanes(D d, V v) {
  if constexpr (kHalf >= hn::MaxLanes(D())) {
    return v;
  } else {
    const hn::RebindToUnsigned<D> du;
    using Index = hn::TFromD<decltype(du)>;
    const auto half = hn::Set(du, static_cast<Index>(kHalf));
    const auto lane = hn::Iota(du, 0);
    const auto partner = hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Xor(lane, half)));
    const auto second = hn::RebindMask(d, hn::Eq(hn::And(lane, half), half));
    const auto sign = hn::IfThenElse(second, hn::Set(d, -1), hn::Set(d, 1));
    return hn::MulAdd(v, sign, partner);
  }
}

// x becomes Hx, without normalisation. `count` is a power of two, at least one vector.
template <class T>
HWY_INLINE void hadamard_transform(T* x, std::size_t count) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  for (std::size_t i = 0; i < count; i += kLanes) {
    auto v = hn::LoadU(d, x + i);
    v = butterfly_lanes<1>(d, v);
    v = butterfly_lanes<2>(d, v);
    v = butterfly_lanes<4>(d, v);
    v = butterfly_lanes<8>(d, v);
    hn::StoreU(v, d, x + i);
  }
  std::size_t half = kLanes;
  for (; 2 * half < count; half *= 4)
    for (std::size_t begin = 0; begin < count; begin += 4 * half)
      for (T* at = x + begin; at < x + begin + half; at += kLanes) {
        const auto a = hn::LoadU(d, at);
        const auto b = hn::LoadU(d, at + half);
        const auto c = hn::LoadU(d, at + 2 * half);
        const auto e = hn::LoadU(d, at + 3 * half);
        const auto ab = hn::Add(a, b);
        const auto a_b = hn::Sub(a, b);
        const auto ce = hn::Add(c, e);
        const auto c_e = hn::Sub(c, e);
        hn::StoreU(hn::Add(ab, ce), d, at);
        hn::StoreU(hn::Add(a_b, c_e), d, at + half);
        hn::StoreU(hn::Sub(ab, ce), d, at + 2 * half);
        hn::StoreU(hn::Sub(a_b, c_e), d, at + 3 * half);
      }
  if (half < count)
    for (T* at = x; at < x + half; at += kLanes) {
      const auto a = hn::LoadU(d, at);
      const auto b = hn::LoadU(d, at + half);
      hn::StoreU(hn::Add(a, b), d, at);
      hn::StoreU(hn::Sub(a, b), d, at + half);
    }
}

// row *= factor, and *= signs if there are any.
HWY_INLINE void scale_signed(float* row, std::size_t count, float factor, const float* signs) {
  const FloatTag d;
  const auto f = hn::Set(d, factor);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = hn::Mul(hn::LoadU(d, row + i), f);
    hn::StoreU(signs != nullptr ? hn::Mul(x, hn::LoadU(d, signs + i)) : x, d, row + i);
  }
}

// row becomes factor * H(signs * row). It is scaled first, so that sums stay in range if the result does.
HWY_INLINE void rotate(float* row, std::size_t count, float factor, const float* signs) {
  scale_signed(row, count, factor, signs);
  hadamard_transform(row, count);
}

// row becomes factor * signs * (H row).
HWY_INLINE void rotate_back(float* row, std::size_t count, float factor, const float* signs) {
  scale_signed(row, count, factor, nullptr);
  hadamard_transform(row, count);
  if (signs != nullptr) scale_signed(row, count, 1, signs);
}

}  // namespace sluice::backend::cpu::cache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
