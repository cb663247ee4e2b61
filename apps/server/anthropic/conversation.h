// Anthropic's messages in the form that templates of chat models expect.
#pragma once

#include "server/json.h"

namespace sluice::server::anthropic {

// `system` may be null. Throws ApiError naming the block that makes no sense.
Json template_messages(const Json& system, const Json& messages);

}  // namespace sluice::server::anthropic
