// The choice of a lower instruction set than the machine's best.
#include <gtest/gtest.h>

#include <hwy/targets.h>

#include "backend/cpu/runtime/isa.h"
#include "sluice/error.h"
#include "sluice/ops/backend.h"

namespace sluice::backend::cpu {
namespace {

#if defined(__x86_64__)
constexpr const char* kLowest = "sse4";
#else
constexpr const char* kLowest = "neon";
#endif

TEST(Isa, IsTheBestOfTheMachineUnlessNamed) {
  const auto best = ops::make_backend("cpu", {.threads = 1});
  const auto lowest = ops::make_backend("cpu", {.threads = 1, .isa = kLowest});
  EXPECT_EQ(best->description(), "1 threads, " + std::string(name_of(choose_isa(""))));
  EXPECT_EQ(lowest->description(), "1 threads, " + std::string(kLowest));
  EXPECT_EQ(choose_isa(name_of(choose_isa(""))), choose_isa(""));
}

TEST(Isa, LowersWhatHighwayChoosesFrom) {
  const std::int64_t lowest = highway_targets(choose_isa(kLowest));
  const std::int64_t best = highway_targets(choose_isa(""));
  EXPECT_EQ(lowest & best, lowest);
  EXPECT_NE(lowest, 0);
  EXPECT_EQ(best, hwy::SupportedTargets());
  if (choose_isa("") != choose_isa(kLowest)) {
    EXPECT_NE(lowest, best);
  }
}

TEST(Isa, RefusesWhatTheMachineLacks) {
  try {
    ops::make_backend("cpu", {.threads = 1, .isa = "altivec"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'altivec'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(kLowest), std::string::npos) << error.what();
  }
  EXPECT_THROW(ops::make_backend("reference", {.isa = kLowest}), Error);
}

}  // namespace
}  // namespace sluice::backend::cpu
