// The files of a converted folder besides tensors.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace sluice::convert {

// Writes the config.json of `in` without what no longer applies, and with the `quantization` block unless it
// is null.
void write_config(const std::filesystem::path& in, const std::filesystem::path& out, Json config,
                  const Json& quantization);

// Tokenizer, chat template and generation defaults.
void copy_text_files(const std::filesystem::path& in, const std::filesystem::path& out);

}  // namespace sluice::convert
