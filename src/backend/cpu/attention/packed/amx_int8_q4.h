// Rows of 4-bit codes for the matrix units that multiply bytes.
//
// Levels, queries and weights are integers of sixteen bits, each two signed digits of eight: levels times one
// factor, a query by its largest coordinate, the weights of a block by the largest of them. Half the products
// and less than half the unpacking of BF16 parts (packed/amx_bf16_q4.h), for an error of 1e-4: not for exact
// F32 calls. Columns of a product of keys and rows of a sum of values come in groups of eight queries: their
// first digits, then their second ones. Sums of integers are exact: tiling never changes a bit.
//
// Coordinates of keys go by in the order of the codes' nibbles (to_nibble_order).
#pragma once

#include "backend/cpu/attention/packed/amx_bf16_q4.h"

namespace sluice::backend::cpu::attention::packed {

using Digit = std::int8_t;

constexpr std::size_t kDigitStep = 64;    // coordinates, or rows of values, of one product of tiles
constexpr std::size_t kDigitQueries = 8;  // of a group

bool multiplies_digits(Isa isa, std::int64_t bits, std::size_t width);

constexpr std::size_t digit_groups(std::size_t queries) {
  return (queries + kDigitQueries - 1) / kDigitQueries;
}

// Memory of one worker for some queries at most.
struct DigitSpace {
  static std::size_t bytes(std::size_t queries, std::size_t width);
  DigitSpace() = default;
  DigitSpace(std::size_t queries, std::size_t width, std::byte* at);

  Digit* queries = nullptr;         // tiles
  Digit* weights = nullptr;         // tiles
  Digit* prepared = nullptr;        // levels on their way to the units
  std::int32_t* results = nullptr;  // of the units
  float* query_scales = nullptr;
  float* weight_scales = nullptr;
  float* sums = nullptr;  // [queries][width], of every 32 columns the even ones first
};

// Queries in the order of nibbles, `stride` floats apart.
void pack_digits(const float* queries, std::size_t stride, std::size_t count, std::size_t width,
                 const DigitSpace& space);
// scores[q * stride + j] of kKeyRows rows of codes.
void score_digits(const CodedRows& coded, std::size_t count, const DigitSpace& space, AttendAhead& ahead,
                  float* scores, std::size_t stride);

// sums += the weights of rows kDigitStep * [begin, end) times their levels.
void add_digits(const CodedRows& coded, const bf16::QueryWeights& weights, std::size_t begin, std::size_t end,
                const DigitSpace& space, AttendAhead& ahead);
// to[q * width + i] += the sums, in the order of the coordinates.
void add_digit_sums(const DigitSpace& space, std::size_t count, std::size_t width, float* to);

}  // namespace sluice::backend::cpu::attention::packed
