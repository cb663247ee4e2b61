// Every case of every op on instruction sets below the best: the best one, with matrix units if available,
// runs in every other test.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "isas_here.h"
#include "op_names.h"
#include "sluice/op_runner.h"
#include "sluice/ops/backend.h"

namespace sluice {
namespace {

class Targets : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }

  static void expect_reference(const std::string& isa) {
    SCOPED_TRACE(isa);
    // All cases exact, and some rounded as in engines.
    for (const auto& [exact, cases] : {std::pair{true, 0}, std::pair{false, 60}})
      for (const OpVerification& result : verify_ops(
               {.backend = "cpu", .op = GetParam(), .threads = 2, .cases = cases, .exact = exact, .isa = isa},
               {}))
        for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }
};

TEST_P(Targets, MatchReference) {
  std::vector<std::string> lower = isas_here();
  lower.pop_back();
  for (const std::string& isa : lower) expect_reference(isa);
  // AVX-512 without VNNI and BF16 products.
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) return;
  hwy::SetSupportedTargetsForTest(HWY_AVX3);
  expect_reference("");
}

INSTANTIATE_TEST_SUITE_P(Ops, Targets, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice
