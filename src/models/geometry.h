// The shapes of well-known models, as config.json would state them.
#pragma once

#include "base/json.h"

namespace sluice::models {

// "qwen3.6-35b-a3b", or shrunk: "qwen3.6-35b-a3b:layers=8,experts=64,vocab=32768".
Json geometry_config(std::string_view geometry);
std::vector<std::string_view> geometry_names();

}  // namespace sluice::models
