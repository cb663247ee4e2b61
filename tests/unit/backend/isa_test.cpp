// The choice of a lower instruction set than the machine's best.
#include <gtest/gtest.h>

#include <hwy/targets.h>

#include "backend/cpu/runtime/isa.h"
#include "expect_error.h"
#include "isas_here.h"
#include "sluice/ops/backend.h"

namespace sluice::backend::cpu {
namespace {

// A native build has none below the machine's own.
std::string lowest_isa() {
  return isas_here().front();
}

TEST(Isa, IsTheBestOfTheMachineUnlessNamed) {
  const std::string lowest_name = lowest_isa();
  const auto best = ops::make_backend("cpu", {.threads = 1});
  const auto lowest = ops::make_backend("cpu", {.threads = 1, .isa = lowest_name});
  EXPECT_EQ(best->description(), "1 threads, " + std::string(name_of(choose_isa(""))));
  EXPECT_EQ(lowest->description(), "1 threads, " + lowest_name);
  EXPECT_EQ(choose_isa(name_of(choose_isa(""))), choose_isa(""));
}

TEST(Isa, LowersWhatHighwayChoosesFrom) {
  const std::string lowest_name = lowest_isa();
  const std::int64_t lowest = highway_targets(choose_isa(lowest_name));
  const std::int64_t best = highway_targets(choose_isa(""));
  EXPECT_EQ(lowest & best, lowest);
  EXPECT_NE(lowest, 0);
#if defined(HWY_COMPILE_ONLY_STATIC)  // a native build that has kernels for one target only
  EXPECT_EQ(best, HWY_STATIC_TARGET);
#else
  EXPECT_EQ(best, hwy::SupportedTargets());
#endif
  // AMX adds nothing that Highway detects.
  const bool lower = choose_isa("") != choose_isa(lowest_name) &&
                     !(choose_isa("") == Isa::amx && choose_isa(lowest_name) == Isa::avx512);
  if (lower) {
    EXPECT_NE(lowest, best);
  }
}

TEST(Isa, RefusesWhatTheMachineLacks) {
  const std::string lowest_name = lowest_isa();
  expect_error(ErrorKind::input, {"'altivec'", lowest_name},
               [] { ops::make_backend("cpu", {.threads = 1, .isa = "altivec"}); });
  expect_error(ErrorKind::input, {"'reference' has no instruction set"},
               [&] { ops::make_backend("reference", {.isa = lowest_name}); });
}

}  // namespace
}  // namespace sluice::backend::cpu
