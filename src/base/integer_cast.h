// Integer conversions. Between integer types the value is expected to fit; if it does not, debug builds stop
// instead of continuing with another number.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <utility>

namespace sluice {

template <std::integral To, std::integral From>
constexpr To integer_cast(From value) {
  const auto result = static_cast<To>(value);
  assert(std::cmp_equal(result, value));
  return result;
}

constexpr int to_int(std::integral auto value) {
  return integer_cast<int>(value);
}

constexpr unsigned to_unsigned(std::integral auto value) {
  return integer_cast<unsigned>(value);
}

// A count or offset in the type of memory sizes and containers.
constexpr std::size_t to_size(std::integral auto value) {
  return integer_cast<std::size_t>(value);
}

// For floating-point arithmetic with integers. Beyond 2^53 the nearest double.
constexpr double to_double(std::integral auto value) {
  return static_cast<double>(value);
}

}  // namespace sluice
