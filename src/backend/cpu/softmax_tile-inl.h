// One step of an online softmax over a tile of rows. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_SOFTMAX_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_SOFTMAX_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_SOFTMAX_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_SOFTMAX_TILE_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

// Turns scores[j] of rows [begin, end) into weights exp(score * score_factors[j] - maximum) *
// weight_factors[j] and those of all other rows into 0, whatever the factors there. Updates the maximum and
// the total of the weights before their factors, and returns what earlier sums must be multiplied by. `rows`
// is a multiple of the vector. NaN stays NaN.
HWY_INLINE float softmax_tile(float* HWY_RESTRICT scores, const float* HWY_RESTRICT score_factors,
                              const float* HWY_RESTRICT weight_factors, std::int64_t begin, std::int64_t end,
                              std::int64_t rows, float& maximum, float& total) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto visible = [&](std::int64_t j) HWY_ATTR {
    const auto lane = hn::Iota(di, 0);
    const auto before = hn::Set(di, static_cast<std::int32_t>(std::clamp<std::int64_t>(begin - j, 0, step)));
    const auto inside = hn::Set(di, static_cast<std::int32_t>(std::clamp<std::int64_t>(end - j, 0, step)));
    return hn::RebindMask(d, hn::AndNot(hn::Lt(lane, before), hn::Lt(lane, inside)));
  };
  const float old_maximum = maximum;
  auto largest = hn::Set(d, maximum);
  for (std::int64_t j = 0; j < rows; j += step) {
    const auto score = hn::Mul(hn::LoadU(d, scores + j), hn::LoadU(d, score_factors + j));
    const auto masked =
        hn::IfThenElse(visible(j), score, hn::Set(d, -std::numeric_limits<float>::infinity()));
    largest = hn::Max(largest, masked);
    hn::StoreU(masked, d, scores + j);
  }
  maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
  const bool none = maximum == -std::numeric_limits<float>::infinity();  // nothing in sight so far
  const auto shift = hn::Set(d, none ? 0 : maximum);
  auto sum = hn::Zero(d);
  for (std::int64_t j = 0; j < rows; j += step) {
    const auto x = hn::Sub(hn::LoadU(d, scores + j), shift);
    const auto weight = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
    sum = hn::Add(sum, weight);
    const auto factor = hn::LoadU(d, weight_factors + j);
    hn::StoreU(hn::IfThenElseZero(visible(j), hn::Mul(weight, factor)), d, scores + j);
  }
  const float rescale = none ? 1 : std::exp(old_maximum - maximum);
  total = total * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
  return rescale;
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
