// What kernels need to know of a weight: how its values, scales and biases are stored. There is one kernel
// instantiation per storage.
#pragma once

#include "sluice/ops/weight.h"

namespace sluice::quant {

// fp4 serves mxfp4 and nvfp4, which differ only in scales.
enum class Storage : std::uint8_t {
  f32,
  bf16,
  f16,
  affine2,
  affine3,
  affine4,
  affine5,
  affine6,
  affine8,
  fp4,
  fp8,
};
Storage storage_of(const ops::Weight& weight);

enum class ScaleType : std::uint8_t { none, f32, bf16, f16, e8m0, e4m3 };
// The type of the weight's scales or biases.
ScaleType scale_type_of(const ops::Weight& weight, const ops::ConstView& part);

// Bytes of a row; 0 for an absent part.
std::int64_t row_bytes(const ops::ConstView& part);

}  // namespace sluice::quant
