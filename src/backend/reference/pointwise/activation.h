// Activations in double, correct for every finite argument.
#pragma once

#include <cmath>

namespace sluice::backend::reference::pointwise {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double silu(double x) {
  return x / (1 + std::exp(-x));
}

}  // namespace sluice::backend::reference::pointwise
