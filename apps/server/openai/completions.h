// POST /v1/completions.
#pragma once

#include "server/api/work.h"
#include "server/served_model.h"

namespace sluice::server::openai {

api::Work completion(const Json& body, const ServedModel& model);

}  // namespace sluice::server::openai
