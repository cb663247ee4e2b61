// Errors in the format of Anthropic's protocol.
#pragma once

#include "server/api_error.h"
#include "server/json.h"

namespace sluice::server::anthropic {

// Tells clients to send complete conversations.
constexpr std::string_view kThreadsUnsupported = "thread_unsupported_request";

Json error_body(const ApiError& error, const std::string& request_id = {});

}  // namespace sluice::server::anthropic
