// Formats as data: the properties in the list, and a format of interleaved blocks, which fits the same
// Weight.
#include "quant/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "quant/formats.h"
#include "tensor/element.h"

namespace sluice::quant {
namespace {

TEST(Formats, AreFoundByNameAndByMode) {
  for (const Format* format : kFormats) {
    EXPECT_EQ(find_format(format->name), format);
    EXPECT_EQ(&format_of(format->mode), format);
    EXPECT_EQ(name(format->mode), format->name);
  }
  EXPECT_EQ(find_format("q4"), nullptr);
  EXPECT_EQ(format_names(), "affine, mxfp4, mxfp8, nvfp4");
}

TEST(Formats, LabelsNameTheWidthWhereThereIsAChoice) {
  ops::Weight weight;
  weight.values = {nullptr, ops::DType::bf16, {2, 64}};
  EXPECT_EQ(label(weight), "BF16");
  weight.values = {nullptr, ops::DType::u32, {2, 8}};
  EXPECT_EQ(label(weight), "4-bit g64");
  weight.mode = ops::QuantMode::nvfp4;
  EXPECT_EQ(label(weight), "nvfp4");
}

// GGUF's Q8_0: 32 values as an F16 scale and 32 signed bytes, one after the other.
constexpr int kOneWidth[] = {8};
constexpr int kOneGroup[] = {32};
constexpr Format kQ8 = {
    .mode = ops::QuantMode::affine,
    .name = "q8_0",
    .bits = kOneWidth,
    .group_sizes = kOneGroup,
    .block_values = 32,
    .block_bytes = 34,
    .value =
        [](const ops::Weight& w, std::int64_t row, std::int64_t i) {
          const auto* block =
              static_cast<const std::byte*>(w.values.data) + row * w.values.strides[0] + i / 32 * 34;
          return ops::load(block, ops::DType::f16, 0) *
                 std::bit_cast<std::int8_t>(std::to_integer<std::uint8_t>(block[2 + i % 32]));
        },
};

TEST(Formats, BlocksOfCodesAndScalesAreOneByteMatrix) {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kColumns = 96;
  std::mt19937 random(18);
  std::vector<std::byte> bytes(kRows * kColumns / 32 * 34 + 1);
  std::vector<double> want;
  std::byte* at = bytes.data() + 1;  // at an odd address, as in a mapped file
  for (std::int64_t b = 0; b < kRows * kColumns / 32; ++b) {
    const ops::Float16 scale = ops::to_float16(std::uniform_real_distribution<float>(-1, 1)(random));
    std::memcpy(at, &scale, 2);
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
      std::memcpy(at + 2 + i, &code, 1);
      want.push_back(static_cast<double>(ops::to_float(scale)) * code);
    }
    at += 34;
  }
  ops::Weight weight;
  weight.values = {bytes.data() + 1, kQ8.value_type(), {kRows, kColumns / 32 * 34}};
  EXPECT_TRUE(weight.quantized());
  EXPECT_EQ(weight.bytes(), bytes.size() - 1);
  EXPECT_EQ(columns(kQ8, weight.values.shape.back(), weight.bits), kColumns);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t i = 0; i < kColumns; ++i)
      EXPECT_EQ(kQ8.value(weight, row, i), want[static_cast<std::size_t>(row * kColumns + i)])
          << "row " << row << ", value " << i;
}

}  // namespace
}  // namespace sluice::quant
