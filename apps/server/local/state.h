// GET /v1/sluice/state: what is running.
#pragma once

#include "server/json.h"
#include "server/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server::local {

// Includes the sequences of one client, or of all.
Json state_json(const ServedModel& model, const Scheduler& scheduler, const std::string* client);

}  // namespace sluice::server::local
