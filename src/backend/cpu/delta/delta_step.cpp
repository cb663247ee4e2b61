// Runs the parts of a Gated DeltaNet step one after the other; intermediate results stay in cache.
#include "sluice/ops/delta/delta_step.h"

#include <memory>

#include "backend/cpu/runtime/context.h"
#include "ops/delta_step_parts.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::DeltaStep& op) {
  // Not in the context's scratch, which the parts use themselves; about 40 KB per token.
  const auto between = std::make_unique_for_overwrite<std::byte[]>(ops::DeltaStepParts::bytes(op));
  const ops::DeltaStepParts parts(op, between.get());
  run(context, parts.conv);
  run(context, parts.norm);
  run(context, parts.gates);
  run(context, parts.rule);
  run(context, parts.gate);
}

}  // namespace sluice::backend::cpu
