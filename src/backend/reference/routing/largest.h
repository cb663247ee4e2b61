// Choosing the largest values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace sluice::backend::reference::routing {

// Indices of the values in descending order; equal values are ordered by index.
inline std::vector<std::int32_t> falling_order(const std::vector<double>& values) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace sluice::backend::reference::routing
