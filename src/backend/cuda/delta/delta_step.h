#pragma once

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/delta/delta_step.h"

namespace sluice::backend::cuda::delta {

// `early`: states may be read while the preceding launch still runs.
void run_step(Context& context, const ops::DeltaStep& op, bool early);

}  // namespace sluice::backend::cuda::delta
