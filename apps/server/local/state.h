// GET /v1/sluice/state: what runs now.
#pragma once

#include "server/api/json.h"
#include "server/api/served_model.h"
#include "sluice/scheduler.h"

namespace sluice::server {

// With the sequences of one client, or of all.
Json state_json(const ServedModel& model, const Scheduler& scheduler, const std::string* client);

}  // namespace sluice::server
