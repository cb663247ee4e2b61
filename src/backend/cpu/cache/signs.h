// The signs of a rotation, stored with one bit per coordinate, as factors.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::backend::cpu::cache {

// Writes 1 or -1 for each coordinate and returns `to`, or null if there are no signs.
inline const float* read_signs(const ops::ConstView& signs, std::size_t width, float* to) {
  if (!signs.present()) return nullptr;
  const auto* bits = static_cast<const std::uint8_t*>(signs.data);
  for (std::size_t i = 0; i < width; ++i) to[i] = (bits[i / 8] >> (i % 8) & 1) != 0 ? -1.0F : 1.0F;
  return to;
}

}  // namespace sluice::backend::cpu::cache
