// The Lloyd-Max levels and interval bounds of one code width, passed to kernels by value, and the bit stream
// of codes. Rows of 16 bits hold BF16 numbers instead of codes and need neither.
#pragma once

#include "quant/codebook.h"

namespace sluice::backend::cuda::cache {

struct Levels {
  float values[quant::Codebook::kMaxLevels] = {};

  explicit Levels(std::int64_t bits) {
    if (bits == 16) return;
    const quant::Codebook& book = quant::codebook(bits);
    for (std::size_t c = 0; c < quant::Codebook::kMaxLevels; ++c) values[c] = book.float_levels()[c];
  }
};

// Bounds in double, because only so every value gets the same code as in the reference.
struct Bounds {
  double values[quant::Codebook::kMaxLevels] = {};

  explicit Bounds(std::int64_t bits) {
    if (bits == 16) return;
    const quant::Codebook& book = quant::codebook(bits);
    for (std::size_t c = 0; c < quant::Codebook::kMaxLevels; ++c) values[c] = book.bounds()[c];
  }
};

// Code i of a row: bits [i*bits, (i+1)*bits) of a little-endian stream at any byte address.
__device__ __forceinline__ unsigned read_code(const unsigned char* row, int i, int bits) {
  const int at = i * bits;
  const int shift = at % 8;
  unsigned window = row[at / 8];
  if (shift + bits > 8) window |= static_cast<unsigned>(row[at / 8 + 1]) << 8;
  return window >> shift & ((1u << bits) - 1);
}

// The level of code i of a row, or its number i if rows hold numbers.
__device__ __forceinline__ float read_level(const unsigned char* row, int i, int bits, const float* levels) {
  if (bits != 16) return levels[read_code(row, i, bits)];
  return __uint_as_float(static_cast<unsigned>(row[2 * i]) << 16 | static_cast<unsigned>(row[2 * i + 1])
                                                                       << 24);
}

// Byte j of the stream of `codes`.
__device__ __forceinline__ unsigned char pack_byte(const unsigned char* codes, int j, int bits) {
  unsigned byte = 0;
  for (int i = 8 * j / bits; i * bits < 8 * j + 8; ++i) {
    const int shift = i * bits - 8 * j;
    byte |= shift >= 0 ? static_cast<unsigned>(codes[i]) << shift : static_cast<unsigned>(codes[i]) >> -shift;
  }
  return static_cast<unsigned char>(byte);
}

}  // namespace sluice::backend::cuda::cache
