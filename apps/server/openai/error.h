// Errors in the format of OpenAI's protocol.
#pragma once

#include "server/api_error.h"
#include "server/json.h"

namespace sluice::server::openai {

Json error_body(const ApiError& error);

}  // namespace sluice::server::openai
