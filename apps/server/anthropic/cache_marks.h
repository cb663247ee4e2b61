// Where an Anthropic request marks its prompt for caching: blocks with `cache_control`.
#pragma once

#include <cstdint>
#include <vector>

#include "server/json.h"

namespace sluice::server::anthropic {

// The messages that contain such a block, counted back from the last one, which is 0; the system prompt and
// tools together count as one before the first. Throws ApiError if a mark is invalid, or if there are more
// than four.
std::vector<std::int64_t> cache_marks(const Json& body);

}  // namespace sluice::server::anthropic
