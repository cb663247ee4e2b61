// For builds without case tables: reports that when one is requested.
#include "base/error.h"
#include "runner/case.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

namespace {

[[noreturn]] void fail_absent(std::string_view op) {
  fail(
      ErrorKind::unsupported,
      "{}: this build leaves out the cases that verify and time ops; 'tools/build release sluice_cli' builds "
      "build/release/bin/sluice, which has them",
      op);
}

}  // namespace

template <class Op>
std::vector<Case> cases() {
  fail_absent(Op::kName);
}

template <class Op>
std::vector<BenchCase> bench_cases() {
  fail_absent(Op::kName);
}

namespace {

template <class... Ops>
constexpr auto instantiate(ops::OpList<Ops...>) {
  return std::tuple(&cases<Ops>..., &bench_cases<Ops>...);
}
// [[gnu::used]] makes the compiler emit both functions for every op.
[[gnu::used]] constexpr auto kInstantiated = instantiate(ops::AllOps{});

}  // namespace
}  // namespace sluice::runner
