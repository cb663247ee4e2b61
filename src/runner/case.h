// The case table: what verification, tests and benchmarks run. src/runner/cases/x_cases.cpp defines cases<Op>
// for op x.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/op_file.h"

namespace sluice::runner {

// One input for correctness. The file is generated on demand from a seed that depends on op and label only.
struct Case {
  std::string label;
  std::function<OpFile(std::uint64_t seed)> make;
};

// One input for speed, with the minimum of bytes to move and operations to do.
struct BenchCase {
  std::string label;
  std::function<OpFile(std::uint64_t seed)> make;
  double bytes = 0;
  double flops = 0;
};

template <class Op>
std::vector<Case> cases();
template <class Op>
std::vector<BenchCase> bench_cases();

// FNV-1a of "op/label": the same data on every machine.
std::uint64_t case_seed(std::string_view op, std::string_view label);

}  // namespace sluice::runner
