// Angles of rotary embeddings, reduced before they are rounded. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_ANGLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ANGLE_INL_H_
#undef SLUICE_BACKEND_CPU_ANGLE_INL_H_
#else
#define SLUICE_BACKEND_CPU_ANGLE_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <numbers>

#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// angles[i] = position * inv_freq[i] modulo one turn, in [-pi, pi].
HWY_INLINE void reduced_angles(std::int32_t position, const float* inv_freq, std::size_t count,
                               float* angles) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto p = hn::Set(dd, to_double(position));
  std::size_t i = 0;
  for (; i + hn::Lanes(dd) <= count; i += hn::Lanes(dd)) {
    const auto angle = hn::Mul(p, hn::PromoteTo(dd, hn::LoadU(df, inv_freq + i)));
    const auto turns = hn::Mul(angle, hn::Set(dd, 1 / kTurn));
    const auto part = hn::Sub(turns, hn::Round(turns));
    hn::StoreU(hn::DemoteTo(df, hn::Mul(part, hn::Set(dd, kTurn))), df, angles + i);
  }
  for (; i < count; ++i) {
    const double turns = to_double(position) * static_cast<double>(inv_freq[i]) * (1 / kTurn);
    angles[i] = static_cast<float>((turns - std::nearbyint(turns)) * kTurn);
  }
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
