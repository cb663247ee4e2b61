// Every case of every op on the instruction sets below the best: the best one, with matrix units where there
// are any, runs in every other test.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "sluice/op_runner.h"

namespace sluice {
namespace {

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDescription& op : describe_ops()) names.push_back(op.name);
  return names;
}

class Targets : public ::testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(Targets, MatchReference) {
  for (const std::int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const OpVerification& result : verify_ops({.backend = "cpu", .op = GetParam(), .threads = 2}, {}))
      for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Targets, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice
