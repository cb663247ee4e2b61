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

#include "backend/cpu/simd/exponential-inl.h"
#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// Per row, the factors of its score and of its weight.
struct RowFactors {
  const float* score;
  const float* weight;
};

// The largest score so far, and the total of the weights before their factors.
struct RunningSoftmax {
  float& maximum;
  float& total;
};

// Turns scores[j] of rows [begin, end) into weights exp(score * factors.score[j] - maximum) *
// factors.weight[j], and those of all other rows into 0 regardless of their factors. Updates `running`, and
// returns the factor that rescales earlier sums. `rows` is a multiple of the vector length. NaN stays NaN.
HWY_INLINE float softmax_tile(float* HWY_RESTRICT scores, const RowFactors& factors, std::int64_t begin,
                              std::int64_t end, std::int64_t rows, const RunningSoftmax& running) {
  const FloatTag d;
  const float* HWY_RESTRICT score_factors = factors.score;
  const float* HWY_RESTRICT weight_factors = factors.weight;
  auto& [maximum, total] = running;
  const std::int64_t step = hn::Lanes(d);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  // Calls f(j, mask) for the vectors that overlap [begin, end). Masking costs as much as the rest, and most
  // vectors do not need it.
  const auto for_each_vector = [&](const auto& f) HWY_ATTR {
    const std::int64_t last = std::min(end, rows);
    for (std::int64_t j = std::max<std::int64_t>(begin, 0) / step * step; j < last; j += step) {
      if (begin <= j && j + step <= end) {
        f(j, [](auto v, auto) HWY_ATTR { return v; });
        continue;
      }
      const auto before = hn::FirstN(d, to_size(std::max<std::int64_t>(begin - j, 0)));
      const auto visible = hn::AndNot(before, hn::FirstN(d, to_size(end - j)));
      f(j, [&](auto v, auto other) HWY_ATTR { return hn::IfThenElse(visible, v, other); });
    }
  };
  const float old_maximum = maximum;
  auto largest = hn::Set(d, maximum);
  for_each_vector([&](std::int64_t j, const auto& mask) HWY_ATTR {
    const auto score = mask(hn::Mul(hn::LoadU(d, scores + j), hn::LoadU(d, score_factors + j)), lowest);
    largest = hn::Max(largest, score);
    hn::StoreU(score, d, scores + j);
  });
  maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
  const bool none = maximum == -std::numeric_limits<float>::infinity();  // no visible row so far
  const auto shift = hn::Set(d, none ? 0 : maximum);
  auto sum = hn::Zero(d);
  const auto zero = hn::Zero(d);
  std::fill(scores, scores + std::clamp<std::int64_t>(begin, 0, rows) / step * step, 0.0F);
  for_each_vector([&](std::int64_t j, const auto& mask) HWY_ATTR {
    const auto x = hn::Sub(hn::LoadU(d, scores + j), shift);
    // The exponential does not propagate NaN.
    const auto weight = hn::IfThenElse(hn::IsNaN(x), x, exponential_below_one(d, x));
    sum = hn::Add(sum, weight);
    hn::StoreU(mask(hn::Mul(weight, hn::LoadU(d, weight_factors + j)), zero), d, scores + j);
  });
  const std::int64_t written = (std::clamp<std::int64_t>(end, 0, rows) + step - 1) / step * step;
  std::fill(scores + written, scores + rows, 0.0F);
  const float rescale = none || maximum == old_maximum ? 1 : std::exp(old_maximum - maximum);
  total = total * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
  return rescale;
}

}  // namespace sluice::backend::cpu::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
