#include "sluice/ops/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace sluice::ops {
namespace {

// A small float format by definition: 1 sign bit, then exponent bits, then mantissa bits.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int exponent(unsigned bits) const { return static_cast<int>((bits & 0x7fffu) >> mantissa_bits); }
  unsigned mantissa(unsigned bits) const { return bits & ((1u << mantissa_bits) - 1); }
  bool special(unsigned bits) const { return exponent(bits) == (1 << exponent_bits) - 1; }
  bool is_nan(unsigned bits) const { return special(bits) && mantissa(bits) != 0; }

  // The value of finite bits; if all exponent bits are ones, the value that the next binade would have.
  double value(unsigned bits) const {
    const int e = exponent(bits);
    const double fraction = std::ldexp(mantissa(bits), -mantissa_bits);
    const double magnitude = e == 0 ? std::ldexp(fraction, 1 - bias()) : std::ldexp(1 + fraction, e - bias());
    return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
  }

  // Nearest, ties to even, found by bisection over the ordered non-negative bit patterns.
  unsigned nearest(double x) const {
    const unsigned sign = std::signbit(x) ? 0x8000u : 0;
    const double magnitude = std::fabs(x);
    const unsigned infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    unsigned low = 0;
    unsigned high = infinity;
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    if (std::isinf(magnitude) || magnitude >= value(infinity)) return sign | infinity;
    const double half = (value(low) + value(high)) / 2;  // exact: neighbours differ in one bit
    const bool up = magnitude > half || (magnitude == half && low % 2 == 1);
    return sign | (up ? high : low);
  }
};

constexpr Format kHalf{5, 10};
constexpr Format kBrain{8, 7};

template <class T>
void expect_every_value(const Format& format, T (*narrow)(float)) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float wide = to_float(T{static_cast<std::uint16_t>(bits)});
    if (format.is_nan(bits)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(format.is_nan(narrow(wide).bits)) << bits;
      continue;
    }
    if (format.special(bits)) {
      ASSERT_TRUE(std::isinf(wide)) << bits;
    } else {
      ASSERT_EQ(wide, format.value(bits)) << bits;
    }
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000u) != 0) << bits;
    ASSERT_EQ(narrow(wide).bits, bits);
  }
}

TEST(BFloat16, EveryValueRoundTrips) {
  expect_every_value<BFloat16>(kBrain, to_bfloat16);
}

TEST(Float16, EveryValueRoundTrips) {
  expect_every_value<Float16>(kHalf, to_float16);
}

template <class T>
void expect_nearest(const Format& format, T (*narrow)(float), float x) {
  ASSERT_EQ(narrow(x).bits, format.nearest(x)) << "float bits " << std::bit_cast<std::uint32_t>(x);
}

// The midpoint of every two neighbours, and the floats next to it.
template <class T>
void expect_ties(const Format& format, T (*narrow)(float)) {
  for (unsigned bits = 0; !format.special(bits); ++bits) {
    const auto middle = static_cast<float>((format.value(bits) + format.value(bits + 1)) / 2);
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      expect_nearest(format, narrow, x);
      expect_nearest(format, narrow, -x);
    }
  }
}

TEST(BFloat16, TiesGoToEven) {
  expect_ties<BFloat16>(kBrain, to_bfloat16);
}

TEST(Float16, TiesGoToEven) {
  expect_ties<Float16>(kHalf, to_float16);
}

TEST(Conversions, RandomBitsRoundToTheNearest) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) {
      ASSERT_TRUE(kBrain.is_nan(to_bfloat16(x).bits));
      ASSERT_TRUE(kHalf.is_nan(to_float16(x).bits));
      continue;
    }
    expect_nearest(kBrain, to_bfloat16, x);
    expect_nearest(kHalf, to_float16, x);
    // Most random bits overflow a half; these do not.
    expect_nearest(kHalf, to_float16, std::ldexp(static_cast<float>(random()), -48 + i % 32));
  }
}

TEST(Conversions, NanWithOnlyLowBitsStaysNan) {
  EXPECT_TRUE(kBrain.is_nan(to_bfloat16(std::bit_cast<float>(0x7f800001u)).bits));
  EXPECT_TRUE(kBrain.is_nan(to_bfloat16(std::bit_cast<float>(0xff800001u)).bits));
  EXPECT_TRUE(kHalf.is_nan(to_float16(std::bit_cast<float>(0x7f800001u)).bits));
}

TEST(DTypes, HaveSizesAndNames) {
  EXPECT_EQ(size_bytes(DType::f32), 4u);
  EXPECT_EQ(size_bytes(DType::bf16), 2u);
  EXPECT_EQ(size_bytes(DType::f16), 2u);
  EXPECT_EQ(size_bytes(DType::i32), 4u);
  EXPECT_EQ(size_bytes(DType::u32), 4u);
  EXPECT_EQ(size_bytes(DType::u8), 1u);
  EXPECT_EQ(name(DType::f32), "F32");
  EXPECT_EQ(name(DType::bf16), "BF16");
  EXPECT_EQ(name(DType::f16), "F16");
  EXPECT_EQ(name(DType::i32), "I32");
  EXPECT_EQ(name(DType::u32), "U32");
  EXPECT_EQ(name(DType::u8), "U8");
}

}  // namespace
}  // namespace sluice::ops
