// What decides about the bits of a model's caches and states, as one number: files of prompts are of use
// only to a process with the same.
#pragma once

#include "engine/executor.h"

namespace sluice::scheduler {

// Taken from the checkpoint, the options and a trial: some tokens are read, and what their caches and states
// hold is part of it. So kernels that round differently have another identity, whatever the reason, and
// nobody has to remember to say so. Needs a free slot and free pages of the group.
std::uint64_t identity(engine::Core& core, const std::shared_ptr<engine::SlotGroup>& group);

}  // namespace sluice::scheduler
