// What the norms share.
#pragma once

#include "backend/reference/runtime/element.h"

namespace sluice::backend::reference::pointwise {

inline double sum_of_squares(const ops::ConstView& row) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.dim(0); ++i) sum += get(row, i) * get(row, i);
  return sum;
}

}  // namespace sluice::backend::reference::pointwise
