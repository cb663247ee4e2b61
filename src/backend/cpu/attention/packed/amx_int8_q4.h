// Products with rows of 4-bit codes by AMX in bytes.
//
// Levels, queries and weights are 16-bit integers, each made of two signed 8-bit digits: levels are scaled by
// one constant, a query by its largest coordinate, the weights of a block by the largest of them. This takes
// half the products and less than half the unpacking of BF16 parts (packed/amx_bf16_q4.h), for an error of
// 1e-4, so it is not used for exact F32 calls. Columns of a product of keys, and rows of a sum of values, are
// in groups of eight queries: their first digits, then their second digits. Sums of integers are exact:
// tiling never changes a bit.
//
// Coordinates of keys are in the order of the codes' nibbles (to_nibble_order).
#pragma once

#include "backend/cpu/attention/packed/amx_bf16_q4.h"

namespace sluice::backend::cpu::attention::packed {

using Digit = std::int8_t;

constexpr std::size_t kDigitStep = 64;    // coordinates, or rows of values, per tile product
constexpr std::size_t kDigitQueries = 8;  // per group

bool multiplies_digits(Isa isa, std::int64_t bits, std::size_t width);

constexpr std::size_t digit_groups(std::size_t queries) {
  return (queries + kDigitQueries - 1) / kDigitQueries;
}

// Memory of one worker for a maximum number of queries.
struct DigitSpace {
  static std::size_t bytes(std::size_t queries, std::size_t width);
  DigitSpace() = default;
  DigitSpace(std::size_t queries, std::size_t width, std::byte* at);

  Digit* queries = nullptr;         // tiles
  Digit* weights = nullptr;         // tiles
  Digit* prepared = nullptr;        // levels, unpacked for AMX
  std::int32_t* results = nullptr;  // of AMX
  float* query_scales = nullptr;
  float* weight_scales = nullptr;
  float* sums = nullptr;  // [queries][width], of every 32 columns the even ones first
};

// Packs queries whose coordinates are in the order of nibbles, `stride` floats apart.
void pack_digits(const float* queries, std::size_t stride, std::size_t count, std::size_t width,
                 const DigitSpace& space);
// scores[q * stride + j] for kKeyRows rows of codes.
void score_digits(const CodedRows& coded, std::size_t count, const DigitSpace& space, AttendAhead& ahead,
                  float* scores, std::size_t stride);

// sums += the weights of rows kDigitStep * [begin, end) times their levels.
void add_digits(const CodedRows& coded, const bf16::QueryWeights& weights, std::size_t begin, std::size_t end,
                const DigitSpace& space, AttendAhead& ahead);
// to[q * width + i] += the sums, in the order of the coordinates.
void add_digit_sums(const DigitSpace& space, std::size_t count, std::size_t width, float* to);

}  // namespace sluice::backend::cpu::attention::packed
