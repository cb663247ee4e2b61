#include "scheduler/chunk_plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "printed_seed.h"

namespace sluice::scheduler {
namespace {

using Chunks = std::vector<std::int64_t>;

TEST(ChunkPlan, GivesWholeUnitsInOrder) {
  const PromptPart prompts[] = {{0, 1000}, {0, 1000}};
  EXPECT_EQ(plan_chunks(prompts, 512), (Chunks{512, 0}));
  EXPECT_EQ(plan_chunks(prompts, 1100), (Chunks{1000, 64}));
  EXPECT_EQ(plan_chunks(prompts, 100000), (Chunks{1000, 1000}));
}

TEST(ChunkPlan, EndsAtMultiplesOfTheSequence) {
  const PromptPart prompts[] = {{70, 1000}};
  EXPECT_EQ(plan_chunks(prompts, 256), (Chunks{58 + 192}));
  EXPECT_EQ(plan_chunks(prompts, 10), (Chunks{58})) << "the first prompt always goes on";
}

TEST(ChunkPlan, ShortPromptsShareAPass) {
  const PromptPart prompts[] = {{0, 20}, {0, 0}, {0, 30}, {0, 40}};
  EXPECT_EQ(plan_chunks(prompts, 64), (Chunks{20, 0, 30, 0}));
  EXPECT_EQ(plan_chunks(prompts, 128), (Chunks{20, 0, 30, 40}));
}

// With any budgets, a prompt is read completely, divided only at multiples of 64, and a turn stays within its
// budget.
TEST(ChunkPlan, ReadsEverythingWithinTheBudget) {
  std::mt19937 random(printed_seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<PromptPart> prompts(1 + random() % 6);
    for (PromptPart& prompt : prompts)
      prompt = {static_cast<std::int64_t>(random() % 500), static_cast<std::int64_t>(random() % 3000)};
    const auto left = [&] {
      return std::accumulate(prompts.begin(), prompts.end(), std::int64_t{0},
                             [](std::int64_t sum, const PromptPart& one) { return sum + one.left; });
    };
    int turns = 0;
    while (left() > 0) {
      const std::int64_t budget = 64 * static_cast<std::int64_t>(1 + random() % 20);
      const Chunks chunks = plan_chunks(prompts, budget);
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        ASSERT_GE(chunks[i], 0);
        ASSERT_LE(chunks[i], prompts[i].left);
        prompts[i].done += chunks[i];
        prompts[i].left -= chunks[i];
        sum += chunks[i];
        if (chunks[i] > 0 && prompts[i].left > 0) {
          ASSERT_EQ(prompts[i].done % 64, 0);
        }
      }
      ASSERT_GT(sum, 0);
      ASSERT_LE(sum, budget);
      ASSERT_LT(++turns, 2000);
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
