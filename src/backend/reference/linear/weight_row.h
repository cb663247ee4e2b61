// Weights for the reference backend: one row as numbers, whatever its storage.
#pragma once

#include <vector>

#include "backend/reference/runtime/element.h"
#include "quant/bit_stream.h"
#include "quant/minifloat.h"
#include "sluice/ops/weight.h"

namespace sluice::backend::reference::linear {

// Element (row, i) of a matrix [N,K].
inline double weight_value(const ops::Weight& w, std::int64_t row, std::int64_t i) {
  if (!w.quantized()) return get(w.values, row, i);
  const std::int64_t row_bytes = w.values.dim(1) * 4;
  const std::uint32_t code =
      quant::read_code(static_cast<const std::byte*>(w.values.data) + row * row_bytes, i, w.bits);
  const std::int64_t group = i / w.group_size;
  if (w.mode == ops::QuantMode::affine) return code * get(w.scales, row, group) + get(w.biases, row, group);
  const auto scale = ops::read<std::uint8_t>(w.scales.data, offset(w.scales, row, group));
  switch (w.mode) {
    case ops::QuantMode::mxfp8:
      return static_cast<double>(quant::e4m3_to_float(static_cast<std::uint8_t>(code))) *
             quant::e8m0_to_float(scale);
    case ops::QuantMode::nvfp4:
      return static_cast<double>(quant::e2m1_to_float(code)) * quant::e4m3_to_float(scale);
    default:
      return static_cast<double>(quant::e2m1_to_float(code)) * quant::e8m0_to_float(scale);
  }
}

inline std::vector<double> weight_row(const ops::Weight& w, std::int64_t row) {
  std::vector<double> values(static_cast<std::size_t>(w.shape()[1]));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = weight_value(w, row, static_cast<std::int64_t>(i));
  return values;
}

// sum_i x[i] * row[i], with x a view of rank 1.
inline double dot(const ops::ConstView& x, const std::vector<double>& row) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += get(x, static_cast<std::int64_t>(i)) * row[i];
  return sum;
}

}  // namespace sluice::backend::reference::linear
