// Codebook levels as 14-bit integers, for products of words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::attention::packed {

constexpr std::int64_t kLargestLevel = 8191;
constexpr std::int64_t kLargestFactor = 16383;  // of a query's coordinate or a weight
// Number of products whose sum fits into 32 bits.
constexpr std::size_t kExactProducts = 16;
static_assert(kExactProducts * kLargestLevel * kLargestFactor <= 0x7fffffff);

struct WordLevels {
  double factor;                        // levels times this are nearly integers
  alignas(64) std::int16_t words[256];  // repeated
  alignas(64) std::uint8_t low[256];    // the words' bytes
  alignas(64) std::uint8_t high[256];
};

const WordLevels& word_levels(std::int64_t bits);

// Whether vectors can multiply levels of this width as words.
bool knows_words(Isa isa, std::int64_t bits, std::size_t width);

}  // namespace sluice::backend::cpu::attention::packed
