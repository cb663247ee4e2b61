// Small parameter vectors (norm weights, taps, biases) of any float type, read as float.
#pragma once

#include "sluice/ops/view.h"
#include "tensor/element.h"

namespace sluice::backend::cpu {

inline float read_parameter(const ops::ConstView& view, std::int64_t i) {
  return static_cast<float>(ops::load(view.data, view.dtype, i));
}

// Whether the parameters are aligned for access as an array of their type.
inline bool aligned(const ops::ConstView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0;
}

inline void read_parameters(const ops::ConstView& view, float* to) {
  for (std::int64_t i = 0; i < view.elements(); ++i) to[i] = read_parameter(view, i);
}

}  // namespace sluice::backend::cpu
