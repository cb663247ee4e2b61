// A quantisation format as data: what it is called, what it allows, which planes it has, and how a value is
// read. Everything outside of kernels asks a Format and names none; quant/formats.h lists them all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "quant/storage.h"
#include "sluice/ops/weight.h"

namespace sluice::quant {

// What a plane beside the codes holds.
enum class Plane : std::uint8_t {
  none,
  floats,  // F32, BF16 or F16
  bytes,   // U8, which the format itself decodes
};

struct Format {
  ops::QuantMode mode;
  std::string_view name;
  std::span<const int> bits;         // that a code may have; the default first
  std::span<const int> group_sizes;  // values that may share a scale; the default first
  Plane scales = Plane::none;
  Plane biases = Plane::none;
  ScaleType byte_scales = ScaleType::none;  // of a plane of bytes

  // A format that interleaves codes and scales stores K values of a row as K/block_values blocks of
  // block_bytes bytes: `values` is U8 [..,N,K/block_values*block_bytes], and there are no planes.
  int block_values = 0;
  int block_bytes = 0;

  // Which kernels read codes of so many bits; null where only the reference reads the format.
  Storage (*storage)(int bits) = nullptr;
  // Value i of a row of a matrix [N,K], as the specification reads it.
  double (*value)(const ops::Weight& weight, std::int64_t row, std::int64_t i) = nullptr;

  constexpr bool in_blocks() const { return block_values > 0; }
  constexpr ops::DType value_type() const { return in_blocks() ? ops::DType::u8 : ops::DType::u32; }
};

// Values in a row of so many words, or bytes of blocks.
constexpr std::int64_t columns(const Format& format, std::int64_t stored, int bits) {
  if (format.in_blocks()) return stored / format.block_bytes * format.block_values;
  return bits > 0 ? stored * 32 / bits : stored;
}

}  // namespace sluice::quant
