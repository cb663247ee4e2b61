// The ids that end a model's turn.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace sluice::checkpoint {

// The sorted union of what config.json, generation_config.json and tokenizer_config.json name: exporters
// disagree on where the end of a chat turn is stored, and a model without it never stops. The last two files
// are optional. `token_id` resolves the token that tokenizer_config.json gives as text.
std::vector<int> stop_ids(const std::filesystem::path& folder,
                          FunctionRef<std::optional<int>(std::string_view token)> token_id);

}  // namespace sluice::checkpoint
