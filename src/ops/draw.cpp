#include "ops/draw.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice::ops {

namespace {

// Indices of the `count` largest logits in falling order, equal ones by index.
std::vector<std::int32_t> falling(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < order.size()) std::nth_element(order.begin(), end, order.end(), before);
  std::sort(order.begin(), end, before);
  order.resize(count);
  return order;
}

}  // namespace

std::int32_t draw(std::span<const float> logits, const DrawSettings& settings, std::uint64_t seed,
                  std::uint64_t position) {
  std::size_t count = logits.size();
  if (settings.top_k > 0) count = std::min(count, static_cast<std::size_t>(settings.top_k));
  const std::vector<std::int32_t> order = falling(logits, count);
  const float largest = logits[static_cast<std::size_t>(order[0])];
  std::vector<std::uint64_t> weights(count);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i)
    total += weights[i] =
        draw_weight(logits[static_cast<std::size_t>(order[i])], largest, settings.temperature);
  const std::uint64_t goal = kept_goal(settings.top_p, total);
  const double least = settings.min_p / kWeightUnit;
  std::uint64_t kept = 0;
  std::size_t keep = 0;
  while (keep < count && kept < goal && static_cast<double>(weights[keep]) >= least) kept += weights[keep++];
  std::uint64_t left = draw_target(seed, position, kept);
  std::size_t chosen = 0;
  while (weights[chosen] <= left) left -= weights[chosen++];
  return order[chosen];
}

}  // namespace sluice::ops
