// Weights for the reference backend: one row as numbers, from any storage.
#pragma once

#include <vector>

#include "backend/reference/runtime/element.h"
#include "base/integer_cast.h"
#include "quant/formats.h"
#include "sluice/ops/weight.h"

namespace sluice::backend::reference::linear {

// Element (row, i) of a matrix [N,K].
inline double weight_value(const ops::Weight& w, std::int64_t row, std::int64_t i) {
  if (!w.quantized()) return get(w.values, row, i);
  return quant::format_of(w.mode).value(w, row, i);
}

inline std::vector<double> weight_row(const ops::Weight& w, std::int64_t row) {
  std::vector<double> values(to_size(w.shape()[1]));
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
