#include "quant/minifloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "quant/formats.h"
#include "source_dir.h"

namespace sluice::quant {
namespace {

using ops::QuantMode;

class MinifloatGolden : public ::testing::TestWithParam<QuantMode> {};

TEST_P(MinifloatGolden, BitForBit) {
  const std::string mode(name(GetParam()));
  const checkpoint::SafetensorsFile file(std::string(test_data()) + "/quant/minifloat.safetensors");
  const auto* words = file.find(mode + ".words");
  const auto* scales = file.find(mode + ".scales");
  const auto* want = file.find(mode + ".decoded");
  ASSERT_TRUE(words != nullptr && scales != nullptr && want != nullptr);
  const std::size_t count = want->data.size() / sizeof(float);
  std::vector<float> values(count, NAN);
  const Format& format = format_of(GetParam());
  ops::Weight weight;
  weight.mode = format.mode;
  weight.bits = format.bits.front();
  weight.group_size = format.group_sizes.front();
  const auto columns = static_cast<std::int64_t>(count);
  weight.values = {words->data.data(), ops::DType::u32, {1, columns * weight.bits / 32}};
  weight.scales = {scales->data.data(), ops::DType::u8, {1, columns / weight.group_size}};
  ASSERT_EQ(weight.shape(), (ops::Shape{1, columns}));
  for (std::int64_t i = 0; i < columns; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(format.value(weight, 0, i));
  EXPECT_EQ(std::memcmp(values.data(), want->data.data(), want->data.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, MinifloatGolden,
                         ::testing::Values(QuantMode::mxfp4, QuantMode::mxfp8, QuantMode::nvfp4),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(Minifloat, NotANumber) {
  EXPECT_TRUE(std::isnan(e4m3_to_float(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3_to_float(0xff)));
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
  EXPECT_EQ(e4m3_to_float(0x7e), 448);
  EXPECT_EQ(e8m0_to_float(0), 0x1p-127f);
}

}  // namespace
}  // namespace sluice::quant
