// The promise of invariance on the CPU, for every op with tokens and any number of threads. Driven by the
// ops' tables and cases, so new ops and cases are tested automatically.
#include "invariance.h"

#include "op_names.h"

namespace sluice::runner {
namespace {

class Invariance : public ::testing::TestWithParam<std::string> {};

void check_every_case(const std::string& op, bool exact) {
  const auto one_thread = ops::make_backend("cpu", {.threads = 1, .exact = exact});
  const auto two_threads = ops::make_backend("cpu", {.threads = 2, .exact = exact});
  const OpTable table = table_of(op);
  for (const Case& one : table.cases) {
    SCOPED_TRACE(fmt::format("{} [{}]", table.op, one.label));
    const OpFile file = make_case(table, one);
    const OpFile together = run_op(*two_threads, table.op, file);
    const OpFile serial = run_op(*one_thread, table.op, file);
    for (const auto& [name, tensor] : together.tensors)
      EXPECT_TRUE(same_bits(tensor, serial.tensors.at(name))) << name << " with one thread";
    check_parts(*two_threads, table, file, together, check_tokens);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(Invariance, HoldsForEveryCase) {
  check_every_case(GetParam(), true);
}

// As engines compute by default.
TEST_P(Invariance, HoldsForEveryCaseRounded) {
  check_every_case(GetParam(), false);
}

INSTANTIATE_TEST_SUITE_P(Ops, Invariance, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::runner
