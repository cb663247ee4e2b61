// Errors as Anthropic's protocol words them.
#pragma once

#include "server/api_error.h"
#include "server/json.h"

namespace sluice::server::anthropic {

// By which clients know that they have to send whole conversations.
constexpr std::string_view kThreadsUnsupported = "thread_unsupported_request";

Json error_body(const ApiError& error, const std::string& request_id = {});

}  // namespace sluice::server::anthropic
