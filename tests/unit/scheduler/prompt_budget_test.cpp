#include "scheduler/prompt_budget.h"

#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "printed_seed.h"

namespace sluice::scheduler {
namespace {

TEST(CostLine, FitsNoisyMeasurements) {
  std::mt19937 random(printed_seed());
  std::uniform_real_distribution<double> noise(0.98, 1.02);
  CostLine line;
  for (int i = 0; i < 300; ++i) {
    const double tokens = 64.0 * (1 + random() % 64);
    line.add(tokens, (0.004 + 2e-5 * tokens) * noise(random));
  }
  EXPECT_NEAR(line.seconds(1024), 0.004 + 2e-5 * 1024, 0.001);
  EXPECT_NEAR(line.seconds(2300), 0.05, 0.0025);
}

TEST(CostLine, FollowsAChange) {
  CostLine line;
  for (int i = 0; i < 100; ++i) line.add(64.0 * (1 + i % 8), 1e-5 * 64 * (1 + i % 8));
  for (int i = 0; i < 100; ++i) line.add(64.0 * (1 + i % 8), 3e-5 * 64 * (1 + i % 8));
  EXPECT_NEAR(line.seconds(512), 3e-5 * 512, 0.1 * 3e-5 * 512);
}

TEST(CostLine, OneSizeGivesALineThroughTheOrigin) {
  CostLine line;
  EXPECT_FALSE(line.known());
  for (int i = 0; i < 10; ++i) line.add(256, 0.01);
  EXPECT_TRUE(line.known());
  EXPECT_NEAR(line.seconds(512), 0.02, 1e-9);
  line.add(0, 1);  // has no effect
  line.add(64, 0);
  EXPECT_NEAR(line.seconds(512), 0.02, 1e-9);
}

TEST(CostLine, SeparatesTheCostOfDepth) {
  std::mt19937 random(printed_seed());
  std::uniform_real_distribution<double> noise(0.99, 1.01);
  CostLine line, of_one_size;
  for (int i = 0; i < 300; ++i) {
    const double tokens = 64.0 * (1 + random() % 8), rows = tokens * (random() % 8000);
    line.add(tokens, (0.004 + 2e-5 * tokens + 5e-9 * rows) * noise(random), rows);
    of_one_size.add(128, (2e-5 * 128 + 5e-9 * 128 * (i % 50) * 100) * noise(random), 128 * (i % 50) * 100);
  }
  EXPECT_NEAR(line.seconds(512, 512 * 6000), 0.02960, 0.0006);
  EXPECT_NEAR(line.seconds(128, 0), 0.00656, 0.0006);
  EXPECT_NEAR(of_one_size.seconds(128, 128 * 4000), 0.00512, 0.0002);
}

TEST(PromptBudget, HoldsTheTargetBesideDecoding) {
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  EXPECT_EQ(budget.tokens(false), 8192);
  EXPECT_EQ(budget.tokens(true), 64) << "unknown costs are tried out in small";
  for (int i = 0; i < 50; ++i) {
    budget.decoded(0.02);
    budget.prefilled(64 * (1 + i % 10), 0.002 + 1e-5 * 64 * (1 + i % 10));
  }
  for (int i = 0; i < 500; ++i) budget.turned(0.03);  // nothing is ever late
  // (0.05 - 0.02 - 0.002) / 1e-5 = 2800 tokens, in multiples of 64.
  EXPECT_EQ(budget.tokens(true) % 64, 0);
  EXPECT_NEAR(static_cast<double>(budget.tokens(true)), 2800, 64);
  EXPECT_EQ(budget.tokens(false), 8192);
}

TEST(PromptBudget, PromptsProgressEvenIfTheTargetCannotBeMet) {
  PromptBudget budget({.target_seconds = 0.05, .most = 4096});
  budget.prefilled(64, 0.2);
  budget.decoded(0.3);
  EXPECT_EQ(budget.tokens(true), 64);
}

TEST(PromptBudget, ASlowStepCountsAtOnceAndIsForgottenSlowly) {
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  budget.prefilled(1000, 0.01);
  budget.decoded(0.01);
  const std::int64_t calm = budget.tokens(true);
  budget.decoded(0.04);
  EXPECT_LT(budget.tokens(true), calm / 2);
  for (int i = 0; i < 60; ++i) budget.decoded(0.01);
  EXPECT_NEAR(static_cast<double>(budget.tokens(true)), static_cast<double>(calm), 64);
}

// Costs that vary as on a busy machine, with long ones more frequent than by chance.
TEST(PromptBudget, OneTurnInTwoHundredIsLateHoweverMuchCostsVary) {
  std::mt19937 random(printed_seed());
  std::lognormal_distribution<double> factor(0, 0.25);
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  constexpr int kTurns = 20000;
  int late = 0;
  double read = 0;
  for (int i = 0; i < kTurns; ++i) {
    const std::int64_t tokens = budget.tokens(true);
    const double prefill = (0.002 + 1e-5 * static_cast<double>(tokens)) * factor(random);
    const double step = 0.01 * factor(random);
    budget.prefilled(tokens, prefill);
    budget.decoded(step);
    budget.turned(prefill + step);
    late += prefill + step > 0.05;
    read += static_cast<double>(tokens);
  }
  EXPECT_LT(late, kTurns * 0.0075);
  EXPECT_GT(read / kTurns, 1000) << "holding the target by reading nothing is no art";
}

// A GPU: a pass takes 25 ms plus 6 us per token, except for the first ones of their kind.
TEST(PromptBudget, PassesOfConstantCostReadMuch) {
  std::mt19937 random(printed_seed());
  std::uniform_real_distribution<double> noise(0.98, 1.02);
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  for (const double first : {0.8, 0.3, 0.2, 0.1}) budget.turned(first);
  budget.prefilled(512, 0.8);
  const auto turn = [&](std::int64_t tokens) {
    const double prefill = (0.025 + 6e-6 * static_cast<double>(tokens)) * noise(random);
    const double step = 0.01 * noise(random);
    budget.prefilled(tokens, prefill);
    budget.decoded(step);
    budget.turned(prefill + step);
    return prefill + step;
  };
  for (int i = 0; i < 30; ++i) turn(budget.tokens(true));
  int late = 0;
  double read = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t tokens = budget.tokens(true);
    late += turn(tokens) > 0.05;
    read += static_cast<double>(tokens) / 1000;
  }
  EXPECT_GT(read, 1000);
  EXPECT_LE(late, 15);
}

// A small machine: a turn takes two units of a shallow prompt and one of a deep one.
TEST(PromptBudget, ReadsLessOfADeepPromptAtATime) {
  std::mt19937 random(printed_seed());
  std::uniform_real_distribution<double> noise(0.98, 1.02);
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  constexpr int kTurns = 4000;
  int late = 0;
  double read = 0;
  for (std::int64_t i = 0, past = 0; i < kTurns; ++i) {
    const std::int64_t tokens = std::min<std::int64_t>(budget.tokens(true, past), 1024 - past);
    const auto rows = static_cast<double>(tokens * (2 * past + tokens)) / 2;
    const double prefill = (0.001 + 2.7e-4 * static_cast<double>(tokens) + 6e-8 * rows) * noise(random);
    const double step = 0.005 * noise(random);
    budget.prefilled(tokens, prefill, rows);
    budget.decoded(step);
    budget.turned(prefill + step);
    late += prefill + step > 0.05;
    read += static_cast<double>(tokens);
    past = past + tokens == 1024 ? 0 : past + tokens;
  }
  EXPECT_LT(late, kTurns / 100);
  EXPECT_GT(read / kTurns, 80) << "of 128 while the prompt is shallow and 64 then";
}

TEST(PromptBudget, OneMeasurementFarOffChangesLittle) {
  PromptBudget budget({.target_seconds = 0.05, .most = 8192});
  for (int i = 0; i < 50; ++i) budget.prefilled(64 * (1 + i % 10), 0.002 + 1e-5 * 64 * (1 + i % 10));
  const auto before = static_cast<double>(budget.tokens(true));
  budget.prefilled(320, 2);
  EXPECT_NEAR(static_cast<double>(budget.tokens(true)), before, before / 2);
}

TEST(PromptBudget, MostIsRoundedToWholeUnits) {
  EXPECT_EQ(PromptBudget({.target_seconds = 0.05, .most = 200}).tokens(false), 192);
  expect_error(ErrorKind::input, {"target"}, [] { PromptBudget budget({.target_seconds = 0}); });
  expect_error(ErrorKind::input, {"passes"}, [] { PromptBudget budget({.most = 63}); });
}

}  // namespace
}  // namespace sluice::scheduler
