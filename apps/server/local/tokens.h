// POST /tokenize and /detokenize.
#pragma once

#include "server/json.h"
#include "server/served_model.h"

namespace sluice::server::local {

// {"content" or "prompt": text, "add_special": bool} or {"messages": [...]}.
Json tokenize(const Json& body, const ServedModel& model);
// {"tokens": [ids]}.
Json detokenize(const Json& body, const ServedModel& model);

}  // namespace sluice::server::local
