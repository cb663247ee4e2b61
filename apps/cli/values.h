// Strict parsing of option values: nothing is clamped, truncated or guessed.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace sluice::cli {

constexpr std::int64_t kMostTokens = 1'000'000'000;  // limit for options

// The range that an option allows.
template <class T>
struct Range {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};

// Each returns an error ("expected a whole number from 0 to 9"), or nothing once `value` is set.
template <class T>
std::optional<std::string> read_value(const std::string& text, const Range<T>& range, T& value);
// Bytes with or without a unit: 24GB, 1.5GiB, 500MB.
std::optional<std::string> read_size(const std::string& text, std::uint64_t& value);

}  // namespace sluice::cli
