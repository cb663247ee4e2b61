// The weight formats that the case tables of the linear ops cover.
#pragma once

#include <fmt/core.h>

#include <vector>

#include "base/integer_cast.h"
#include "quant/formats.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

inline WeightFormat dense(ops::DType type) {
  return {.quantized = false, .dtype = type};
}
inline WeightFormat affine(int bits, int group_size, ops::DType type = ops::DType::bf16) {
  return {.quantized = true,
          .dtype = type,
          .bias_dtype = type,
          .mode = ops::QuantMode::affine,
          .bits = bits,
          .group_size = group_size};
}
inline WeightFormat mixed(int bits, int group_size, ops::DType scales, ops::DType biases) {
  WeightFormat format = affine(bits, group_size, scales);
  format.bias_dtype = biases;
  return format;
}
// A format in its default form.
inline WeightFormat packed(ops::QuantMode mode) {
  const quant::Format& format = quant::format_of(mode);
  return {
      .quantized = true, .mode = mode, .bits = format.bits.front(), .group_size = format.group_sizes.front()};
}

// Every format once: all widths, group sizes and types of scales.
inline std::vector<WeightFormat> all_formats() {
  using ops::DType;
  std::vector<WeightFormat> formats = {dense(DType::f32), dense(DType::bf16), dense(DType::f16)};
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) formats.push_back(affine(bits, group));
  for (const int bits : {3, 4, 8}) {
    formats.push_back(affine(bits, 64, DType::f32));
    formats.push_back(affine(bits, 64, DType::f16));
  }
  formats.push_back(mixed(4, 64, DType::bf16, DType::f32));
  formats.push_back(mixed(3, 32, DType::f32, DType::f16));
  formats.push_back(mixed(8, 128, DType::f16, DType::bf16));
  for (const quant::Format* format : quant::kFormats)
    if (format->mode != ops::QuantMode::affine && format->storage != nullptr)
      formats.push_back(packed(format->mode));
  return formats;
}

// The most common formats of models.
inline std::vector<WeightFormat> common_formats() {
  return {affine(4, 64), affine(8, 64), affine(6, 32), packed(ops::QuantMode::nvfp4),
          dense(ops::DType::bf16)};
}

// Bytes of one weight in storage, scales and biases included.
inline double bytes_per_value(const WeightFormat& format) {
  if (!format.quantized) return to_double(size_bytes(format.dtype));
  const quant::Format& of = quant::format_of(format.mode);
  if (of.in_blocks()) return to_double(of.block_bytes) / of.block_values;
  const auto bytes = [](quant::Plane plane, ops::DType floats) {
    return plane == quant::Plane::none    ? std::size_t{0}
           : plane == quant::Plane::bytes ? std::size_t{1}
                                          : size_bytes(floats);
  };
  const auto group_bytes = to_double(bytes(of.scales, format.dtype) + bytes(of.biases, format.bias_dtype));
  return format.bits / 8.0 + group_bytes / format.group_size;
}

}  // namespace sluice::runner
