#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Logprobs, AreNormalisedAndFall) {
  const std::vector<float> logits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};
  const auto top = Logprobs(logits).top(5);
  ASSERT_EQ(top.size(), 5u);
  double total = 0;
  for (const TokenLogprob& one : top) total += std::exp(one.logprob);
  EXPECT_NEAR(total, 1, 1e-12);
  const std::int32_t order[] = {1, 3, 2, 0, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(top[i].id, order[i]);
    EXPECT_EQ(top[i].logprob, Logprobs(logits)[order[i]]);
  }
  EXPECT_NEAR(top[0].logprob - top[2].logprob, 1, 1e-12);
}

TEST(Logprobs, TheImpossibleIsNotReported) {
  const std::vector<float> logits = {-kInfinity, 0.5f, -kInfinity};
  const auto top = Logprobs(logits).top(20);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[0].logprob, 0);
}

TEST(Logprobs, ACertainTokenMakesOthersImpossible) {
  const std::vector<float> logits = {7.0f, kInfinity, kInfinity};
  const Logprobs logprobs(logits);
  EXPECT_NEAR(logprobs[1], -std::log(2.0), 1e-12);
  EXPECT_EQ(logprobs[0], -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace sluice::sampling
