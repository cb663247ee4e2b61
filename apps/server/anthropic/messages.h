// POST /v1/messages and /v1/messages/count_tokens.
#pragma once

#include "server/api/work.h"
#include "server/served_model.h"

namespace sluice::server::anthropic {

api::Work create_message(const Json& body, const ServedModel& model);
Json count_tokens(const Json& body, const ServedModel& model);

}  // namespace sluice::server::anthropic
