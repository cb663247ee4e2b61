#include "sluice/ops/delta_step.h"

#include <vector>

#include "backend/reference/runtime/reference.h"
#include "ops/delta_step_parts.h"

namespace sluice::backend::reference {

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
