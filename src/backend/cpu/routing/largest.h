// Selecting the largest values of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace sluice::backend::cpu::routing {

// Moves the `count` indices with the largest values to the front, in descending order, equal values by index.
// No value may be NaN.
template <class Value>
void choose_largest(const Value* values, std::int32_t* indices, std::int64_t size, std::int64_t count) {
  std::partial_sort(indices, indices + count, indices + size, [values](std::int32_t a, std::int32_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  });
}

}  // namespace sluice::backend::cpu::routing
