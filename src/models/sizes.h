// Reading sizes from config.json with their limits.
#pragma once

#include "base/error.h"
#include "checkpoint/config.h"

namespace sluice::models {

// Large enough for any model, small enough that products do not overflow.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 24;

// A required integer of at least 1.
inline std::int64_t size(const checkpoint::Config& config, std::string_view key) {
  const auto value = config.get<std::int64_t>(key);
  if (value < 1 || value > kLargestSize)
    fail(ErrorKind::checkpoint, "{}: '{}' is {}, allowed is 1 to {}", config.where(), key, value,
         kLargestSize);
  return value;
}

// An integer from 0 to `most`, or `fallback` if the field is missing.
inline std::int64_t count_or(const checkpoint::Config& config, std::string_view key, std::int64_t fallback,
                             std::int64_t most = kLargestSize) {
  const auto value = config.get_or<std::int64_t>(key, fallback);
  if (value < 0 || value > most)
    fail(ErrorKind::checkpoint, "{}: '{}' is {}, allowed is 0 to {}", config.where(), key, value, most);
  return value;
}

inline std::int64_t size_or(const checkpoint::Config& config, std::string_view key, std::int64_t fallback) {
  return config.has(key) ? size(config, key) : fallback;
}

// A field with one supported value: throws, by name, for any other.
template <class T>
void expect(const checkpoint::Config& config, std::string_view key, const T& implemented) {
  const T value = config.get_or<T>(key, implemented);
  if (value != implemented)
    fail(ErrorKind::unsupported, "{}: '{}' is {}, only {} is supported", config.where(), key, value,
         implemented);
}

}  // namespace sluice::models
