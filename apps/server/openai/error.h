// Errors as OpenAI's protocol words them.
#pragma once

#include "server/api/api_error.h"
#include "server/api/json.h"

namespace sluice::server::openai {

Json error_body(const ApiError& error);

}  // namespace sluice::server::openai
