// Single values of a matrix in any storage: for code where speed does not matter or a row is read once.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/linear/linear.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear {

__device__ __forceinline__ float e2m1_to_float(unsigned code) {
  // Sign, two exponent bits and one mantissa bit, in a float's layout: 2^126 times too small.
  return __uint_as_float((code & 8) << 28 | (code & 7) << 22) * 0x1p126f;
}

__device__ __forceinline__ float e4m3_to_float(unsigned code) {
  if ((code & 0x7f) == 0x7f) return __uint_as_float(0x7fc00000);
  return __uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 20) * 0x1p120f;
}

__device__ __forceinline__ float e8m0_to_float(unsigned code) {
  return __uint_as_float(code == 255 ? 0x7fc00000 : code == 0 ? 0x00400000 : code << 23);
}

// Scale or bias number i of the array at `from`.
__device__ __forceinline__ float scale_value(ScaleType type, const std::byte* from, long long i) {
  switch (type) {
    case ScaleType::f32:
      return reinterpret_cast<const float*>(from)[i];
    case ScaleType::bf16:
      return to_float(reinterpret_cast<const Bf16*>(from)[i]);
    case ScaleType::f16:
      return to_float(reinterpret_cast<const __half*>(from)[i]);
    case ScaleType::e8m0:
      return e8m0_to_float(reinterpret_cast<const unsigned char*>(from)[i]);
    case ScaleType::e4m3:
      return e4m3_to_float(reinterpret_cast<const unsigned char*>(from)[i]);
    default:
      return 1.0f;
  }
}

// Code i of a row; a row is one little-endian bit stream.
__device__ __forceinline__ unsigned packed_code(const std::byte* row, long long i, int bits) {
  const long long at = i * bits;
  const auto* bytes = reinterpret_cast<const unsigned char*>(row) + at / 8;
  const int shift = to_int(at % 8);
  unsigned window = bytes[0];
  if (shift + bits > 8) window |= static_cast<unsigned>(bytes[1]) << 8;
  return window >> shift & ((1u << bits) - 1);
}

// Element (n, i) of the matrix at `at`.
__device__ __forceinline__ float weight_value(const Matrices& w, const MatrixPointers& at, long long n,
                                              long long i) {
  const std::byte* row = at.values + n * w.row_bytes;
  if (w.storage == Storage::f32) return reinterpret_cast<const float*>(row)[i];
  if (w.storage == Storage::bf16) return to_float(reinterpret_cast<const Bf16*>(row)[i]);
  if (w.storage == Storage::f16) return to_float(reinterpret_cast<const __half*>(row)[i]);
  const unsigned code = packed_code(row, i, w.bits);
  const long long group = i / w.group_size;
  const float scale = scale_value(w.scale_type, at.scales + n * w.scale_row_bytes, group);
  if (w.storage == Storage::fp4) return e2m1_to_float(code) * scale;
  if (w.storage == Storage::fp8) return e4m3_to_float(code) * scale;
  return fmaf(static_cast<float>(code), scale,
              scale_value(w.bias_type, at.biases + n * w.bias_row_bytes, group));
}

// Codes 8*eighth to 8*eighth + 7, the first one in the lowest bits.
__device__ __forceinline__ unsigned long long eight_codes(const std::byte* row, long long eighth, int bits) {
  const std::byte* from = row + eighth * bits;
  if (bits == 4) return *reinterpret_cast<const unsigned*>(from);
  if (bits == 8) {
    const auto* words = reinterpret_cast<const unsigned*>(from);
    return words[0] | static_cast<unsigned long long>(words[1]) << 32;
  }
  unsigned long long codes = 0;
  for (int b = 0; b < bits; ++b)
    codes |= static_cast<unsigned long long>(reinterpret_cast<const unsigned char*>(from)[b]) << (8 * b);
  return codes;
}

// Elements (n, 8*eighth) to (n, 8*eighth + 7); 0 from column `columns` on. Group sizes are multiples of
// eight.
__device__ __forceinline__ void eight_values(const Matrices& w, const MatrixPointers& at, long long n,
                                             long long eighth, long long columns, float (&values)[8]) {
  if (w.scale_type == ScaleType::none) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = 8 * eighth + i < columns ? weight_value(w, at, n, 8 * eighth + i) : 0.0f;
    return;
  }
  const unsigned long long codes = eight_codes(at.values + n * w.row_bytes, eighth, w.bits);
  const long long group = 8 * eighth / w.group_size;
  const float scale = scale_value(w.scale_type, at.scales + n * w.scale_row_bytes, group);
  const bool affine = w.storage != Storage::fp4 && w.storage != Storage::fp8;
  const float bias = affine ? scale_value(w.bias_type, at.biases + n * w.bias_row_bytes, group) : 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const unsigned code = static_cast<unsigned>(codes >> (i * w.bits)) & ((1u << w.bits) - 1);
    values[i] = w.storage == Storage::fp4   ? e2m1_to_float(code) * scale
                : w.storage == Storage::fp8 ? e4m3_to_float(code) * scale
                                            : fmaf(static_cast<float>(code), scale, bias);
  }
}

}  // namespace sluice::backend::cuda::linear
