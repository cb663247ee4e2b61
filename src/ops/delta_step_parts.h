// delta_step as the ops that it combines.
#pragma once

#include "sluice/ops/delta/causal_conv1d.h"
#include "sluice/ops/delta/delta_gates.h"
#include "sluice/ops/delta/delta_rule.h"
#include "sluice/ops/delta/delta_step.h"
#include "sluice/ops/pointwise/gated_rms_norm.h"
#include "sluice/ops/pointwise/qk_l2_norm.h"

namespace sluice::ops {

struct DeltaStepParts {
  CausalConv1d conv;
  QkL2Norm norm;
  DeltaGates gates;
  DeltaRule rule;
  GatedRmsNorm gate;

  // `memory` holds the intermediate results, aligned for floats.
  static std::size_t bytes(const DeltaStep& op);
  DeltaStepParts(const DeltaStep& op, std::byte* memory);
};

}  // namespace sluice::ops
