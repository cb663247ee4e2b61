// Small parameter vectors (norm weights, taps, biases) of any float type, read as float.
#pragma once

#include <cstring>

#include "sluice/ops/view.h"

namespace sluice::backend::cpu {

// Works at any byte address: parameters may lie unaligned in a mapped file.
inline float read_parameter(const ops::ConstView& view, std::int64_t i) {
  const auto* at =
      static_cast<const std::byte*>(view.data) + i * static_cast<std::int64_t>(size_bytes(view.dtype));
  if (view.dtype == ops::DType::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return view.dtype == ops::DType::bf16 ? ops::to_float(ops::BFloat16{bits})
                                        : ops::to_float(ops::Float16{bits});
}

// Whether the parameters can be read as an array of their type.
inline bool aligned(const ops::ConstView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % size_bytes(view.dtype) == 0;
}

inline void read_parameters(const ops::ConstView& view, float* to) {
  for (std::int64_t i = 0; i < view.elements(); ++i) to[i] = read_parameter(view, i);
}

}  // namespace sluice::backend::cpu
