// Element types of tensors, and the two 16-bit floats with correct rounding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::ops {

enum class DType : std::uint8_t { f32, bf16, f16, i32, u32, u8 };

constexpr std::size_t size_bytes(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

// The name used in files and messages: F32, BF16, F16, I32, U32, U8.
std::string_view name(DType type);

// Storage of a bfloat16 or an IEEE half; arithmetic happens in float.
struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

constexpr float to_float(float x) {
  return x;
}
constexpr float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// Round to nearest, ties to even; NaN stays a quiet NaN.
constexpr BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

float to_float(Float16 x);
Float16 to_float16(float x);  // round to nearest, ties to even; overflow gives infinity

}  // namespace sluice::ops
