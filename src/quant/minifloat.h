// The small floats of the MX and NV formats, converted exactly.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "quant/bit_stream.h"
#include "sluice/ops/weight.h"

namespace sluice::quant {

// E2M1, the four-bit values of mxfp4 and nvfp4: bit 3 is the sign.
inline constexpr std::array<float, 16> kE2m1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

constexpr float e2m1_to_float(std::uint32_t code) {
  return kE2m1[code & 15];
}

// E4M3: bias 7, no infinity, NaN only with all exponent and mantissa bits set.
constexpr float e4m3_to_float(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) return (sign != 0 ? -1.0f : 1.0f) * static_cast<float>(magnitude) * 0x1p-9f;
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

// E8M0: a power of two; 0 is 2^-127, 255 is NaN.
constexpr float e8m0_to_float(std::uint8_t code) {
  if (code == 255) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<std::uint32_t>(code) << 23);
}

// A value of a format with planes of codes and byte scales: the exact product of the two.
template <auto value_of, auto scale_of>
double minifloat_value(const ops::Weight& w, std::int64_t row, std::int64_t i) {
  const auto* codes = static_cast<const std::byte*>(w.values.data) + row * w.values.strides[0] * 4;
  const auto* scales = static_cast<const std::byte*>(w.scales.data) + row * w.scales.strides[0];
  const auto code = static_cast<std::uint8_t>(read_code(codes, i, w.bits));
  return static_cast<double>(value_of(code)) *
         scale_of(std::to_integer<std::uint8_t>(scales[i / w.group_size]));
}

}  // namespace sluice::quant
