// Everything that determines the bits of a model's caches and states, as one number: files of prompts are
// only valid in a process with the same number.
#pragma once

#include "engine/executor.h"

namespace sluice::scheduler::prefix {

// Derived from the checkpoint, the options and a trial run: the caches and states of some tokens are part of
// it. So kernels that round differently have different identities for any reason, and no one has to remember
// to declare it. Needs a free slot and free pages of the group.
std::uint64_t identity(engine::Core& core, const std::shared_ptr<engine::SlotGroup>& group);

}  // namespace sluice::scheduler::prefix
