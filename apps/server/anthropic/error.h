// Errors as Anthropic's protocol words them.
#pragma once

#include "server/api/api_error.h"
#include "server/api/json.h"

namespace sluice::server::anthropic {

Json error_body(const ApiError& error, const std::string& request_id = {});

}  // namespace sluice::server::anthropic
