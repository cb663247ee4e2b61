// POST /v1/chat/completions.
#pragma once

#include "server/api/work.h"
#include "server/served_model.h"

namespace sluice::server::openai {

api::Work chat_completion(const Json& body, const ServedModel& model);

// POST /v1/chat/completions/input_tokens, as on other local servers.
Json count_input(const Json& body, const ServedModel& model);

}  // namespace sluice::server::openai
