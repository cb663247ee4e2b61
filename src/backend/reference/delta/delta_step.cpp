#include "sluice/ops/delta/delta_step.h"

#include <vector>

#include "backend/reference/runtime/reference.h"
#include "ops/delta_step_parts.h"

namespace sluice::backend::reference {

// Specialisations that other files define. In a unity build those may follow this file, which would be too
// late for a declaration.
template <>
void run(const ops::CausalConv1d& op);
template <>
void run(const ops::QkL2Norm& op);
template <>
void run(const ops::DeltaGates& op);
template <>
void run(const ops::DeltaRule& op);
template <>
void run(const ops::GatedRmsNorm& op);

template <>
void run(const ops::DeltaStep& op) {
  std::vector<std::byte> memory(ops::DeltaStepParts::bytes(op));
  const ops::DeltaStepParts parts(op, memory.data());
  run(parts.conv);
  run(parts.norm);
  run(parts.gates);
  run(parts.rule);
  run(parts.gate);
}

}  // namespace sluice::backend::reference
