// Compares a backend's outputs with the specification.
#pragma once

#include "runner/op_file.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {

struct Verdict {
  double error = 0;  // the worst relative L2 error of the case's float outputs
  double limit = 0;
  bool pass = false;
  std::string detail;  // what failed; empty on success
};

// Runs the case on both backends. F32 activations: relative L2 at most 1e-5. BF16 activations: at most 1e-2
// and at most 1.3 times the error that `reference` itself makes by rounding its outputs (by as many roundings
// as the backend's kernels need), both against `reference` on the same inputs widened to F32. Integer outputs
// must be equal; NaN or an unwritten element never passes.
Verdict compare(ops::Backend& backend, ops::Backend& reference, std::string_view op, const OpFile& inputs);

// sqrt(sum (a-b)^2 / sum b^2); NaN if either has a NaN or only one has an infinity.
double relative_l2(const HostTensor& a, const HostTensor& b);

}  // namespace sluice::runner
