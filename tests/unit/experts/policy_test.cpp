#include "experts/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "expect_error.h"

namespace sluice::experts {
namespace {

using Passes = std::vector<std::vector<std::int32_t>>;

// The misses of a cache with that many slots, one expert per pass.
int misses(Policy& policy, const Passes& passes, std::size_t slots) {
  std::vector<std::int32_t> cached;
  int count = 0;
  for (const auto& pass : passes) {
    policy.use(pass);
    if (std::find(cached.begin(), cached.end(), pass[0]) != cached.end()) continue;
    ++count;
    if (cached.size() == slots) std::erase(cached, policy.victim(cached));
    cached.push_back(pass[0]);
  }
  return count;
}

TEST(Policy, LruLetsTheOldestGo) {
  const auto policy = make_policy("lru", 8);
  for (const std::int32_t e : {3, 1, 2, 3}) policy->use(std::span(&e, 1));
  EXPECT_EQ(policy->victim(std::vector<std::int32_t>{3, 2, 1}), 1);
}

TEST(Policy, LfruKeepsWhatIsNeededOften) {
  const auto policy = make_policy("lfru", 8);
  for (const std::int32_t e : {3, 3, 3, 1, 2}) policy->use(std::span(&e, 1));
  EXPECT_EQ(policy->victim(std::vector<std::int32_t>{3, 2, 1}), 1);
  // Frequent, but long ago.
  for (int i = 0; i < 2000; ++i) {
    const std::int32_t e = 2;
    policy->use(std::span(&e, 1));
  }
  const std::int32_t recent = 1;
  policy->use(std::span(&recent, 1));
  EXPECT_EQ(policy->victim(std::vector<std::int32_t>{3, 2, 1}), 3);
}

TEST(Policy, StaticFollowsItsProfile) {
  const std::vector<std::uint32_t> profile{5, 9, 1, 7};
  const auto policy = make_policy("static", 4, profile);
  EXPECT_EQ(policy->victim(std::vector<std::int32_t>{0, 1, 3}), 0);
  expect_error(ErrorKind::input, {"static", "4", "0"}, [] { make_policy("static", 4); });
  expect_error(ErrorKind::input, {"clock", "lru, lfru, static"}, [] { make_policy("clock", 4); });
}

TEST(Policy, NoneIsBetterThanBelady) {
  std::mt19937 random(3);
  std::discrete_distribution<std::int32_t> skewed({9, 7, 5, 4, 3, 2, 2, 1, 1, 1});
  Passes passes;
  for (int i = 0; i < 3000; ++i) passes.push_back({skewed(random)});
  for (const std::size_t slots : {1, 3, 5, 8}) {
    const int best = misses(*make_belady(10, passes), passes, slots);
    for (const char* name : {"lru", "lfru"})
      EXPECT_LE(best, misses(*make_policy(name, 10), passes, slots)) << name << " with " << slots;
  }
}

TEST(Policy, BeladyIsTheTextbooks) {
  const Passes passes{{7}, {0}, {1}, {2}, {0}, {3}, {0}, {4}, {2}, {3},
                      {0}, {3}, {2}, {1}, {2}, {0}, {1}, {7}, {0}, {1}};
  EXPECT_EQ(misses(*make_belady(8, passes), passes, 3), 9);
  EXPECT_EQ(misses(*make_policy("lru", 8), passes, 3), 12);
}

}  // namespace
}  // namespace sluice::experts
