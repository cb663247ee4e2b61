// The promise of invariance on the CPU, for every op that has tokens and any number of threads. Driven by the
// ops' tables and cases: an op or case that is added is tested here without a line.
#include "invariance.h"

#include "op_names.h"

namespace sluice::runner {
namespace {

class Invariance : public ::testing::TestWithParam<std::string> {};

TEST_P(Invariance, HoldsForEveryCase) {
  const auto one_thread = ops::make_backend("cpu", {.threads = 1});
  const auto two_threads = ops::make_backend("cpu", {.threads = 2});
  const OpTable table = table_of(GetParam());
  for (const Case& one : table.cases) {
    SCOPED_TRACE(fmt::format("{} [{}]", table.op, one.label));
    const OpFile file = make_case(table, one);
    const OpFile together = run_op(*two_threads, table.op, file);
    const OpFile serial = run_op(*one_thread, table.op, file);
    for (const auto& [name, tensor] : together.tensors)
      EXPECT_TRUE(same_bits(tensor, serial.tensors.at(name))) << name << " with one thread";
    check_parts(*two_threads, table, file, together, check_tokens);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Invariance, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::runner
