// POST /tokenize and /detokenize.
#pragma once

#include "server/api/json.h"
#include "server/api/served_model.h"

namespace sluice::server {

// {"content" or "prompt": text, "add_special": bool} or {"messages": [...]}.
Json tokenize(const Json& body, const ServedModel& model);
// {"tokens": [ids]}.
Json detokenize(const Json& body, const ServedModel& model);

}  // namespace sluice::server
