// A row of packed codes is one little-endian bit stream: code i occupies bits [i*bits, (i+1)*bits), lowest
// first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/integer_cast.h"

namespace sluice::quant {

// Works at any byte address and never reads a byte beyond the code's own.
inline std::uint32_t read_code(const std::byte* row, std::int64_t i, int bits) {
  const std::int64_t at = i * bits;
  const auto shift = to_unsigned(at % 8);
  std::uint32_t window = std::to_integer<std::uint32_t>(row[at / 8]);
  if (shift + static_cast<unsigned>(bits) > 8) window |= std::to_integer<std::uint32_t>(row[at / 8 + 1]) << 8;
  return (window >> shift) & ((1u << bits) - 1);
}

}  // namespace sluice::quant
