// Anthropic's messages in the form that chat templates expect.
#pragma once

#include "server/json.h"

namespace sluice::server::anthropic {

// `system` may be null. Throws ApiError naming an invalid block.
Json template_messages(const Json& system, const Json& messages);

}  // namespace sluice::server::anthropic
