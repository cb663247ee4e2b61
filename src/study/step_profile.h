// The time of a decode step or of a prompt's pass, op by op.
#pragma once

#include "engine/forward_pass.h"
#include "sluice/model_bench.h"

namespace sluice::study {

// Times the ops of one step of all sequences at `position`. Equal ops of all layers run together as one
// program, so that each reads its own weights from memory and launch costs are those of a real step.
std::vector<OpProfile> profile_step(engine::Core& core, engine::ForwardPass& pass, std::int64_t position,
                                    double peak_bytes_per_second);
// Times the ops of one pass of a prompt, each in its place in the pass: the state of memory and the choice of
// experts are those of a real pass.
std::vector<OpProfile> profile_prompt(engine::Core& core, engine::ForwardPass& pass,
                                      const engine::Batch& batch, double peak_bytes_per_second);

}  // namespace sluice::study
