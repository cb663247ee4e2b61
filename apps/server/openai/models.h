// GET /v1/models and /v1/models/NAME.
#pragma once

#include "server/json.h"
#include "server/served_model.h"

namespace sluice::server::openai {

Json list_models(const ServedModel& model);
// Throws if there is no such model.
Json show_model(const ServedModel& model, const std::string& name);

}  // namespace sluice::server::openai
