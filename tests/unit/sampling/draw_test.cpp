// Drawing without sorting gives the result of scanning the sorted candidates.
#include "sampling/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace sluice::sampling {
namespace {

std::int32_t draw_sorted(std::span<const float> logits, const DrawSettings& settings, std::uint64_t seed,
                         std::uint64_t position) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  if (settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < order.size())
    order.resize(static_cast<std::size_t>(settings.top_k));
  std::vector<std::uint64_t> weights;
  for (const std::int32_t i : order)
    weights.push_back(draw_weight(logits[static_cast<std::size_t>(i)],
                                  logits[static_cast<std::size_t>(order[0])], settings.temperature));
  const std::uint64_t goal =
      kept_goal(settings.top_p, std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
  std::uint64_t kept = 0;
  for (const std::uint64_t weight : weights) {
    if (kept >= goal || static_cast<double>(weight) < settings.min_p / kWeightUnit) break;
    kept += weight;
  }
  std::uint64_t left = draw_target(seed, position, kept);
  std::size_t chosen = 0;
  while (weights[chosen] <= left) left -= weights[chosen++];
  return order[chosen];
}

TEST(Draw, IsThatOfSortedCandidates) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal(0, 3);
  for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 1000u, 20000u})
    for (int round = 0; round < 60; ++round) {
      std::vector<float> logits(count);
      for (float& logit : logits)
        logit = round % 3 == 0 ? std::floor(normal(random)) : normal(random);  // ties
      DrawSettings settings;
      settings.temperature = 0.1 + 0.2 * static_cast<double>(random() % 10);
      settings.top_k = round % 2 == 0 ? 0 : static_cast<std::int64_t>(1 + random() % (2 * count));
      settings.top_p = round % 4 < 2 ? 1.0 : 0.05 + 0.9 * static_cast<double>(random() % 100) / 100;
      settings.min_p = round % 5 < 3 ? 0.0 : static_cast<double>(random() % 100) / 100;
      for (std::uint64_t position = 0; position < 4; ++position)
        ASSERT_EQ(draw(logits, settings, 5, position), draw_sorted(logits, settings, 5, position))
            << count << " candidates, round " << round << ", top_k " << settings.top_k << ", top_p "
            << settings.top_p << ", min_p " << settings.min_p;
    }
}

}  // namespace
}  // namespace sluice::sampling
