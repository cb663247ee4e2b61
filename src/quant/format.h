// A quantisation format as data: its name, what it allows, its planes, and how to read a value. Code outside
// of kernels queries a Format and names none; quant/formats.h lists them all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "quant/storage.h"
#include "sluice/ops/weight.h"

namespace sluice::quant {

// The contents of a plane beside the codes.
enum class Plane : std::uint8_t {
  none,
  floats,  // F32, BF16 or F16
  bytes,   // U8, which the format itself decodes
};

struct Format {
  ops::QuantMode mode;
  std::string_view name;
  std::span<const int> bits;         // allowed code widths, the default first
  std::span<const int> group_sizes;  // values per scale, the default first
  Plane scales = Plane::none;
  Plane biases = Plane::none;
  ScaleType byte_scales = ScaleType::none;  // for a plane of bytes

  // A format that interleaves codes and scales stores K values of a row as K/block_values blocks of
  // block_bytes bytes: `values` is U8 [..,N,K/block_values*block_bytes], and there are no planes.
  int block_values = 0;
  int block_bytes = 0;

  // The storage class of codes of that width, for kernels; null if only the reference reads the format.
  Storage (*storage)(int bits) = nullptr;
  // Value i of a row of a matrix [N,K], as specified.
  double (*value)(const ops::Weight& weight, std::int64_t row, std::int64_t i) = nullptr;

  constexpr bool in_blocks() const { return block_values > 0; }
  constexpr ops::DType value_type() const { return in_blocks() ? ops::DType::u8 : ops::DType::u32; }
};

// Values in a row of that many words, or bytes of blocks.
constexpr std::int64_t columns(const Format& format, std::int64_t stored, int bits) {
  if (format.in_blocks()) return stored / format.block_bytes * format.block_values;
  return bits > 0 ? stored * 32 / bits : stored;
}

}  // namespace sluice::quant
