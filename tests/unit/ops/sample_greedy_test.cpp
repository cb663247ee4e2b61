// Temperature 0 takes the first maximum of the logits, whatever their signs.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/ops/backend.h"

namespace sluice::ops {
namespace {

class SampleGreedy : public ::testing::TestWithParam<std::string_view> {};

std::int32_t pick(std::string_view name, const std::vector<float>& logits) {
  const auto backend = make_backend(name, {.threads = 2});
  std::int32_t position = 0;
  std::int32_t id = -1;
  Sample op;
  op.logits = ConstView(logits.data(), DType::f32, {1, static_cast<std::int64_t>(logits.size())});
  op.positions = View(&position, DType::i32, {1});
  op.ids = View(&id, DType::i32, {1});
  op.temperature = 0;
  backend->run(op);
  EXPECT_EQ(position, 1);
  return id;
}

TEST_P(SampleGreedy, TakesTheFirstOfTheLargest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(pick(GetParam(), {-3.0f, -1.5f, -2.0f, -1.5f}), 1);
  EXPECT_EQ(pick(GetParam(), {-1.0f, -0.0f, 0.0f}), 1);  // equal, though their bits are not
  EXPECT_EQ(pick(GetParam(), {-kInfinity, -kInfinity, -kInfinity}), 0);
  EXPECT_EQ(pick(GetParam(), {-kInfinity, 1e-40f, 0.0f}), 1);
  EXPECT_EQ(pick(GetParam(), {0.0f, kInfinity, 3e38f}), 1);
  for (const std::size_t size : {1u, 15u, 16u, 17u, 63u, 64u, 1001u})
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<float> logits(size, -2.5f);
      logits[at] = -2.25f;
      EXPECT_EQ(pick(GetParam(), logits), static_cast<std::int32_t>(at)) << size;
    }
}

INSTANTIATE_TEST_SUITE_P(Backends, SampleGreedy, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::ops
