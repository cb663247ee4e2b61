// MLX's affine quantisation, bit for bit: value = code * scale + bias, one scale and bias per group of
// consecutive values of a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.h"
#include "sluice/ops/dtype.h"

namespace sluice::quant {

struct AffineFormat {
  int bits = 4;
  int group_size = 64;
};

// Rows of values, all F32, BF16 or F16, contiguous and at any byte address. Rows are independent, so a large
// matrix may be divided at any row and processed by several threads.
struct ValueRows {
  ops::DType type = ops::DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // a multiple of the group
};

// Per row, words take columns * bits / 8 bytes, scales and biases columns / group_size values of the rows'
// own type. Computes in float and rounds scales and biases only when storing them, as MLX does on the CPU. A
// NaN becomes code 0.
void encode_affine(const AffineFormat& format, const ValueRows& shape, const std::byte* values,
                   std::byte* words, std::byte* scales, std::byte* biases);

// The values of MLX's dequantize: product and sum are each rounded to the type of the scales.
void decode_affine(const AffineFormat& format, const ValueRows& shape, const std::byte* words,
                   const std::byte* scales, const std::byte* biases, std::byte* values);

inline constexpr int kAffineBits[] = {4, 2, 3, 5, 6, 8};
inline constexpr int kAffineGroups[] = {64, 32, 128};
Storage affine_storage(int bits);
double affine_value(const ops::Weight& weight, std::int64_t row, std::int64_t i);
inline constexpr Format kAffine = {
    .mode = ops::QuantMode::affine,
    .name = "affine",
    .bits = kAffineBits,
    .group_sizes = kAffineGroups,
    .scales = Plane::floats,
    .biases = Plane::floats,
    .storage = affine_storage,
    .value = affine_value,
};

}  // namespace sluice::quant
