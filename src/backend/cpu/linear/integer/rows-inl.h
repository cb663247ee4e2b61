// Rows of activations as integers. Included once per instruction set.
//
// A group of x, as long as the weight's groups, becomes one scale and 15-bit integers: scale = largest
// magnitude / kLargestInteger, q = x / scale, rounded to nearest. Fifteen bits are two byte-sized digits for
// instructions that multiply bytes, exact in every implementation, and cost no more than eight bits where
// reading the weights dominates: the relative error is 4e-5 where eight bits give 6e-3.
#if defined(SLUICE_BACKEND_CPU_INTEGER_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_ROWS_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_ROWS_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "backend/cpu/linear/integer/product.h"
#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

using namespace simd::HWY_NAMESPACE;

// Rounds one group. Groups too small to divide by become zero; a group with a NaN or an infinity becomes NaN.
HWY_INLINE void round_group(const float* HWY_RESTRICT x, std::int64_t size, std::int16_t* HWY_RESTRICT q,
                            float& scale, float& sum) {
  const hn::CappedTag<float, 16> d;  // not wider than the smallest group
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int16_t, decltype(d)> d16;
  const std::int64_t lanes = hn::Lanes(d);
  // As integers, magnitudes have the same order, and NaN is above infinity.
  auto top = hn::Zero(di);
  for (std::int64_t i = 0; i < size; i += lanes)
    top = hn::Max(top, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  const float largest = hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(di, top)));
  if (!(largest >= 1e-30f && largest <= std::numeric_limits<float>::max())) {
    std::fill(q, q + size, std::int16_t{0});
    scale = sum = largest < 1e-30f ? 0 : std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const auto factor = hn::Set(d, kLargestInteger / largest);
  auto total = hn::Zero(di);
  for (std::int64_t i = 0; i < size; i += lanes) {
    const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), factor));
    total = hn::Add(total, rounded);
    hn::StoreU(hn::DemoteTo(d16, rounded), d16, q + i);
  }
  scale = largest / kLargestInteger;
  sum = scale * static_cast<float>(hn::GetLane(hn::SumOfLanes(di, total)));
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
