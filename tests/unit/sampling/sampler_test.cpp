#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "expect_error.h"

namespace sluice::sampling {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

std::int32_t draw(SamplingSettings settings, std::uint64_t seed, std::vector<std::int32_t> past = {}) {
  settings.seed = seed;
  std::vector<float> logits = kLogits;
  return sample(logits, settings, past);
}

// Shares of many draws.
std::map<std::int32_t, double> shares(const SamplingSettings& settings, int draws = 20000) {
  std::map<std::int32_t, double> counts;
  for (int i = 0; i < draws; ++i) counts[draw(settings, static_cast<std::uint64_t>(i))] += 1.0 / draws;
  return counts;
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(draw({}, 1), 1);
}

TEST(Sampler, TemperatureOneDrawsByProbability) {
  const auto counts = shares({.temperature = 1});
  double total = 0;
  for (const float logit : kLogits) total += std::exp(logit);
  for (std::size_t i = 0; i < kLogits.size(); ++i)
    EXPECT_NEAR(counts.count(static_cast<std::int32_t>(i)) ? counts.at(static_cast<std::int32_t>(i)) : 0,
                std::exp(kLogits[i]) / total, 0.015);
}

TEST(Sampler, LimitsKeepTheMostLikely) {
  EXPECT_EQ(shares({.temperature = 1, .top_k = 2}).size(), 2u);
  // 1 and 3 have 0.40 each of the whole: 0.5 needs both, and nothing else.
  EXPECT_EQ(shares({.temperature = 1, .top_p = 0.5}).size(), 2u);
  // 2 is e^-1 = 0.37 of the most likely, 0 is 0.135.
  EXPECT_EQ(shares({.temperature = 1, .min_p = 0.2}).size(), 3u);
}

TEST(Sampler, PenaltiesAndBiasMoveTheChoice) {
  EXPECT_EQ(draw({.repetition_penalty = 2}, 0, {1}), 3);
  EXPECT_EQ(draw({.presence_penalty = 1.5}, 0, {1, 3}), 2);
  EXPECT_EQ(draw({.frequency_penalty = 0.6}, 0, {1, 1, 3, 3}), 2);
  EXPECT_EQ(draw({.presence_penalty = 1.5, .penalty_window = 1}, 0, {3, 1}), 3);
  EXPECT_EQ(draw({.logit_bias = {{4, 10.0}}}, 0), 4);
}

TEST(Sampler, SeedAndPositionDecideTheDraw) {
  const SamplingSettings settings{.temperature = 1};
  EXPECT_EQ(draw(settings, 7, {1, 2}), draw(settings, 7, {2, 1}));
  int different = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    different += draw(settings, seed, {0}) != draw(settings, seed) ? 1 : 0;
  EXPECT_GT(different, 5);
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  expect_error(ErrorKind::input, {"temperature"}, [] { check({.temperature = -1}); });
  expect_error(ErrorKind::input, {"top_p"}, [] { check({.top_p = 0}); });
  expect_error(ErrorKind::input, {"min_p"}, [] { check({.min_p = 2}); });
  expect_error(ErrorKind::input, {"logit_bias"}, [] { draw({.logit_bias = {{5, 1.0}}}, 0); });
  std::vector<float> logits = {1, std::numeric_limits<float>::quiet_NaN()};
  expect_error(ErrorKind::checkpoint, {"NaN"}, [&] { sample(logits, {}, {}); });
}

TEST(Sampler, LogprobsAreNormalised) {
  const auto top = top_logprobs(kLogits, 5);
  ASSERT_EQ(top.size(), 5u);
  double total = 0;
  for (const TokenLogprob& one : top) total += std::exp(one.logprob);
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[4].id, 4);
}

}  // namespace
}  // namespace sluice::sampling
