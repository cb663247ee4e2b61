// Where an Anthropic request wants its prompt remembered: blocks with `cache_control`.
#pragma once

#include <cstdint>
#include <vector>

#include "server/json.h"

namespace sluice::server::anthropic {

// Messages that end with or behind such a block, counted from the last one, which is 0; the system prompt and
// tools count as one before all. Throws ApiError where a mark is none, or there are more than four.
std::vector<std::int64_t> cache_marks(const Json& body);

}  // namespace sluice::server::anthropic
