// Integer products (product.h) by the instructions of newer 64-bit Arm processors that multiply
// bytes: dot products of four (sdot), and products of small matrices (usmmla, usdot). They take q as two
// digits of a byte, like the matrix units of x86; all else is as in tile-inl.h, and so is every bit.
#pragma once

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::linear::integer::arm {

enum class Bytes { none, dots, matrices };

// What this processor has and `isa` allows. Asks the processor once.
Bytes available(Isa isa);
// Codes of 4 bits by either, of 8 bits by matrices, which alone multiply unsigned bytes.
bool knows(Isa isa, const MatrixFormat& format);

constexpr int kRows = 4;
constexpr int kTokens = 4;  // at most, together

// A row of x: its digits as the codes lie, then for each group its scale kRows times, then its sum kRows
// times.
struct Row {
  const std::byte* digits;
  const float* scales;
  const float* sums;
};
// The integers of a row, in the order of the columns, become digits.
void split_digits(const MatrixFormat& format, const std::int16_t* integers, std::byte* digits);

// kRows rows of weights.
struct Product {
  Bytes bytes;
  const MatrixFormat& format;
  const std::byte* const (&rows)[kRows];
  const float* scales;  // [group][kRows]
  const float* biases;
};
// out[t * out_step + r] of these and up to kTokens rows of x.
void multiply(const Product& product, const Row* x, std::int64_t tokens, float* out, std::int64_t out_step);

}  // namespace sluice::backend::cpu::linear::integer::arm
