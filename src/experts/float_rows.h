// Converts rows of activations in host memory between their own type, F32 or BF16, and the floats that the
// host computes with.
#pragma once

#include <cstddef>
#include <span>

#include "sluice/ops/dtype.h"

namespace sluice::experts {

void to_floats(const std::byte* from, ops::DType type, std::span<float> to);
void from_floats(std::span<const float> from, ops::DType type, std::byte* to);

}  // namespace sluice::experts
