#include "sluice/ops/weight.h"

#include <gtest/gtest.h>

#include <vector>

#include "expect_error.h"

namespace sluice::ops {
namespace {

class Weights : public ::testing::Test {
 protected:
  Weight dense() const {
    Weight weight;
    weight.values = {data_.data(), DType::bf16, {2, 3, 64}};
    return weight;
  }
  // Two matrices [3,64] of 4-bit values in groups of 32.
  Weight packed() const {
    Weight weight;
    weight.values = {data_.data(), DType::u32, {2, 3, 8}};
    weight.scales = {data_.data() + 192, DType::bf16, {2, 3, 2}};
    weight.biases = {data_.data() + 216, DType::bf16, {2, 3, 2}};
    weight.group_size = 32;
    return weight;
  }
  std::vector<std::byte> data_ = std::vector<std::byte>(1024);
};

TEST_F(Weights, DefaultIsAbsent) {
  EXPECT_FALSE(Weight().present());
  EXPECT_FALSE(ExpertWeights().present());
}

TEST_F(Weights, LogicalShapeCountsValues) {
  EXPECT_EQ(dense().shape(), Shape({2, 3, 64}));
  EXPECT_FALSE(dense().quantized());
  EXPECT_EQ(packed().shape(), Shape({2, 3, 64}));
  EXPECT_TRUE(packed().quantized());
  Weight three_bits = packed();
  three_bits.bits = 3;
  three_bits.values.shape[2] = 6;
  EXPECT_EQ(three_bits.shape(), Shape({2, 3, 64}));
}

TEST_F(Weights, BytesAddUpAllParts) {
  EXPECT_EQ(dense().bytes(), 2u * 3 * 64 * 2);
  EXPECT_EQ(packed().bytes(), 2u * 3 * 8 * 4 + 2 * (2u * 3 * 2 * 2));
}

TEST_F(Weights, IndexTakesOneMatrixOfEveryPart) {
  const Weight second = packed()[1];
  EXPECT_EQ(second.shape(), Shape({3, 64}));
  EXPECT_EQ(second.values.data, data_.data() + 3 * 8 * 4);
  EXPECT_EQ(second.scales.data, data_.data() + 192 + 3 * 2 * 2);
  EXPECT_EQ(second.biases.data, data_.data() + 216 + 3 * 2 * 2);
  EXPECT_EQ(second.group_size, 32);
  expect_error(ErrorKind::internal, {"index 2"}, [&] { packed()[2]; });
}

TEST_F(Weights, ExpertsComeStackedOrSeparate) {
  const ExpertWeights stack{.stack = packed(), .separate = {}};
  EXPECT_TRUE(stack.present());
  EXPECT_EQ(stack.shape(), Shape({2, 3, 64}));
  EXPECT_EQ(stack[1].values.data, packed()[1].values.data);

  const std::vector<Weight> apart = {packed()[1], packed()[0]};
  const ExpertWeights separate{.stack = {}, .separate = apart};
  EXPECT_TRUE(separate.present());
  EXPECT_EQ(separate.shape(), Shape({2, 3, 64}));
  EXPECT_EQ(separate[0].values.data, packed()[1].values.data);
  expect_error(ErrorKind::internal, {"expert 2 of 2"}, [&] { separate[2]; });
  expect_error(ErrorKind::internal, {"expert -1 of 2"}, [&] { separate[-1]; });
}

TEST(QuantModes, HaveNames) {
  EXPECT_EQ(name(QuantMode::affine), "affine");
  EXPECT_EQ(name(QuantMode::mxfp4), "mxfp4");
  EXPECT_EQ(name(QuantMode::mxfp8), "mxfp8");
  EXPECT_EQ(name(QuantMode::nvfp4), "nvfp4");
}

}  // namespace
}  // namespace sluice::ops
