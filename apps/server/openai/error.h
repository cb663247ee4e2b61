// Errors as OpenAI's protocol words them.
#pragma once

#include "server/api_error.h"
#include "server/json.h"

namespace sluice::server::openai {

Json error_body(const ApiError& error);

}  // namespace sluice::server::openai
