// Fills in the defaults of a scheduler's options.
#pragma once

#include "sluice/scheduler.h"

namespace sluice::scheduler {

// Every number is set afterwards; throws if an option is invalid.
SchedulerOptions settle(Engine& engine, const SchedulerOptions& options);

}  // namespace sluice::scheduler
