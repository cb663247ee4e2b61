// Integer products (product.h) with the byte instructions of newer 64-bit Arm processors: dot products of
// four (sdot), and products of small matrices (usmmla, usdot). Integers of x are split into two digits of a
// byte, as for AMX; everything else is as in tile-inl.h, and the bits are the same.
#pragma once

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/runtime/isa.h"

namespace sluice::backend::cpu::linear::integer::arm {

enum class Bytes { none, dots, matrices };

// What this processor supports and `isa` allows. Queries the processor once.
Bytes available(Isa isa);
// Whether codes have 4 bits, or 8 bits with matrix instructions, which alone multiply unsigned bytes.
bool knows(Isa isa, const MatrixFormat& format);

constexpr int kRows = 4;
constexpr int kTokens = 4;  // maximum that is multiplied together

// A row of x: its digits in the order of the codes, then for each group its scale kRows times, then for each
// group its sum kRows times.
struct Row {
  const std::byte* digits;
  const float* scales;
  const float* sums;
};
// Splits the integers of a row, in the order of the columns, into digits.
void split_digits(const MatrixFormat& format, const std::int16_t* integers, std::byte* digits);

// kRows rows of weights.
struct Product {
  Bytes bytes;
  const MatrixFormat& format;
  const std::byte* const (&rows)[kRows];
  const float* scales;  // [group][kRows]
  const float* biases;
};
// out[t * out_step + r] for these rows and up to kTokens rows of x.
void multiply(const Product& product, const Row* x, std::int64_t tokens, float* out, std::int64_t out_step);

}  // namespace sluice::backend::cpu::linear::integer::arm
