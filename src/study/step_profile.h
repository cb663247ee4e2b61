// Where the time of a decode step goes, op by op.
#pragma once

#include "engine/forward_pass.h"
#include "sluice/model_bench.h"

namespace sluice::study {

// Times the ops of one step of all sequences at `position`. Equal ops of all layers run together as one
// program, so that each reads its own weights from memory and launch costs are those of a step.
std::vector<OpProfile> profile_step(engine::Core& core, engine::ForwardPass& pass, std::int64_t position,
                                    double peak_bytes_per_second);

}  // namespace sluice::study
