// What the zeros in a scheduler's options stand for.
#pragma once

#include "sluice/scheduler.h"

namespace sluice::scheduler {

// Every number is there afterwards; what makes no sense is refused.
SchedulerOptions settle(Engine& engine, const SchedulerOptions& options);

}  // namespace sluice::scheduler
