// Ops on tensors in memory.
#include <gtest/gtest.h>

#include <vector>

#include "expect_error.h"
#include "sluice/op_runner.h"

namespace sluice {
namespace {

using ops::ConstView;
using ops::DType;

TEST(RunOp, ReadsInputsWhereTheyLieAndReturnsOutputs) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = ops::make_backend(name);
    const std::vector<float> a = {1, 2, 3, 4}, b = {10, 20, 30, 40};
    const OpResult result = run_op(*backend, "add",
                                   {.tensors = {{"a", ConstView(a.data(), DType::f32, {2, 2})},
                                                {"b", ConstView(b.data(), DType::f32, {2, 2})}},
                                    .attributes = {}});
    ASSERT_EQ(result.fields.size(), 1u);
    EXPECT_EQ(result.fields[0].first, "out");
    EXPECT_EQ(result.fields[0].second.shape, (ops::Shape{2, 2}));
    const auto* out = static_cast<const float*>(result.fields[0].second.data);
    EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{11, 22, 33, 44}));
  }
}

TEST(RunOp, CopiesWhatAnOpUpdates) {
  const auto backend = ops::make_backend("reference");
  const std::vector<float> residual = {1, 2}, delta = {3, 4}, weight = {1, 1};
  const OpResult result = run_op(*backend, "add_rms_norm",
                                 {.tensors = {{"residual", ConstView(residual.data(), DType::f32, {1, 2})},
                                              {"delta", ConstView(delta.data(), DType::f32, {1, 2})},
                                              {"weight", ConstView(weight.data(), DType::f32, {2})}},
                                  .attributes = {{"eps", "1e-6"}}});
  EXPECT_EQ(residual, (std::vector<float>{1, 2}));
  ASSERT_EQ(result.fields.size(), 2u);
  EXPECT_EQ(result.fields[0].first, "residual");
  EXPECT_EQ(static_cast<const float*>(result.fields[0].second.data)[1], 6);
}

TEST(RunOp, RefusesWhatTheOpDoesNotHave) {
  const auto backend = ops::make_backend("reference");
  const std::vector<float> a = {1, 2};
  const ConstView view(a.data(), DType::f32, {2});
  const auto run = [&](std::string_view op, const OpArguments& arguments) {
    run_op(*backend, op, arguments);
  };
  const auto refused = [](std::initializer_list<std::string_view> parts, const auto& call) {
    expect_error(ErrorKind::input, parts, call);
  };
  refused({"no op 'no_such_op'"}, [&] { run("no_such_op", {}); });
  refused({"add", "'b' is missing"}, [&] { run("add", {.tensors = {{"a", view}}, .attributes = {}}); });
  refused({"add", "no input field 'c'"}, [&] {
    run("add", {.tensors = {{"a", view}, {"b", view}, {"c", view}}, .attributes = {}});
  });
  refused({"add", "no attribute 'eps'"}, [&] {
    run("add", {.tensors = {{"a", view}, {"b", view}}, .attributes = {{"eps", "1"}}});
  });
}

}  // namespace
}  // namespace sluice
