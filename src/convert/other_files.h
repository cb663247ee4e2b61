// What a converted folder holds besides tensors.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace sluice::convert {

// config.json of `in` without what no longer holds, with the `quantization` block unless that is null.
void write_config(const std::filesystem::path& in, const std::filesystem::path& out, Json config,
                  const Json& quantization);

// Tokenizer, chat template and generation defaults.
void copy_text_files(const std::filesystem::path& in, const std::filesystem::path& out);

}  // namespace sluice::convert
