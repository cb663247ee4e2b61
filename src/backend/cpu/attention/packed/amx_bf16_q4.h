// Products with rows of 4-bit codes by AMX in BF16 (amx_bf16.h).
//
// Coordinates are in the order of the codes' nibbles: of every 64, first the even ones, then the odd ones.
// Levels are multiplied by kLevelScale.
#pragma once

#include "backend/cpu/attention/amx_bf16.h"

namespace sluice::backend::cpu::attention::packed {

// With this factor, every level is the sum of two BF16 numbers to a relative error of 2^-22, where arbitrary
// numbers only reach 2^-17: so keys, whose errors the softmax amplifies, need no third one. The best of the
// 2^23 floats from 1 to 2.
constexpr float kLevelScale = 1.057168960571289F;

inline bool knows_codes(std::int64_t bits, std::size_t width) {
  return bits == 4 && width % bf16::kStrip == 0;
}

// Rows of codes.
struct CodedRows {
  const std::uint8_t* const* rows;
  std::size_t width;  // coordinates
};

// dots = the levels of kKeyRows rows of codes times the queries.
void multiply_coded_keys(const std::uint8_t* const* rows, std::size_t width, const bf16::Half* queries,
                         const bf16::Columns& columns, bf16::Half* prepared, float* dots);

// Packs weights[q * stride + j] of rows j in kStep * [begin, end) as tiles: the large pieces of all queries,
// then the small ones.
void split_weights(const float* weights, std::size_t stride, std::size_t count, std::size_t begin,
                   std::size_t end, bf16::Half* tiles);
// kStrip columns from `column` on of the sums of `count` queries += their weights times the levels of rows
// kStep * [begin, end) of values.
void add_coded_values(const CodedRows& coded, std::size_t column, std::size_t begin, std::size_t end,
                      std::size_t count, const bf16::Workspace& units);

// Reorders a row of floats to the order of nibbles.
void to_nibble_order(const float* row, std::size_t width, float* to);
// to[q * width + i] += the sums of a query's pieces, in the order of the coordinates.
void add_coded_sums(const float* sums, std::size_t count, std::size_t width, float* to);

}  // namespace sluice::backend::cpu::attention::packed
