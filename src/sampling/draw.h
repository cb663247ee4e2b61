// Sampling a token from logits: the arithmetic that all backends share.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "sampling/anywhere.h"

namespace sluice::sampling {

// Weights are integers in this unit; the most likely token has weight 1.
inline constexpr double kWeightUnit = 0x1p-40;

SLUICE_ANYWHERE inline std::uint64_t draw_weight(float logit, float largest, double temperature) {
  if (logit == largest) return std::uint64_t{1} << 40;
  return static_cast<std::uint64_t>(
      exp((static_cast<double>(logit) - static_cast<double>(largest)) / temperature) / kWeightUnit);
}

// A number in [0, total) from the seed and the position (SplitMix64).
SLUICE_ANYWHERE inline std::uint64_t draw_target(std::uint64_t seed, std::uint64_t position,
                                                 std::uint64_t total) {
  std::uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const double unit = static_cast<double>(z >> 11) * 0x1p-53;
  const auto target = static_cast<std::uint64_t>(unit * static_cast<double>(total));
  return target < total ? target : total - 1;
}

// The most likely tokens are kept until the sum of their weights exceeds this.
SLUICE_ANYWHERE inline std::uint64_t kept_goal(double top_p, std::uint64_t total) {
  const double goal = ceil(top_p * static_cast<double>(total));
  return goal < 1 ? 1 : static_cast<std::uint64_t>(goal);
}

struct DrawSettings {
  double temperature = 1;  // above 0
  std::int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
};

// `logits` must not contain NaN, and their maximum must be finite.
std::int32_t draw(std::span<const float> logits, const DrawSettings& settings, std::uint64_t seed,
                  std::uint64_t position);

}  // namespace sluice::sampling
