#include <gtest/gtest.h>

#include "op_names.h"
#include "runner/case.h"
#include "runner/compare.h"
#include "sluice/op_runner.h"
#include "sluice/ops/backend.h"

namespace sluice {
namespace {

class VerifyOp : public ::testing::TestWithParam<std::string> {};

// One test per op: the complete case table of the CPU backend against the reference.
TEST_P(VerifyOp, CpuMatchesReference) {
  const auto results = verify_ops({.backend = "cpu", .op = GetParam(), .threads = 2}, {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GT(results[0].cases, 0);
  for (const std::string& failure : results[0].failures) ADD_FAILURE() << failure;
}

// Engines round activations and attention weights by default: all products again, within 2.5e-4 for F32
// activations.
class VerifyRounded : public ::testing::TestWithParam<const char*> {};

TEST_P(VerifyRounded, CpuMatchesReference) {
  const auto results = verify_ops({.backend = "cpu", .op = GetParam(), .threads = 2, .exact = false}, {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GT(results[0].cases, 0);
  EXPECT_GT(results[0].worst_error, 1e-5);  // otherwise nothing was rounded
  for (const std::string& failure : results[0].failures) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(Products, VerifyRounded,
                         ::testing::Values("matmul", "gate_up_swiglu", "expert_matmul",
                                           "expert_gate_up_swiglu", "mla_project_out", "attention",
                                           "mla_attention", "turboquant_attention",
                                           "mla_turboquant_attention"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Ops, VerifyOp, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice
