// Line input with libedit.
#pragma once

#include "chat/line_reader.h"

namespace sluice::cli::chat::editing {

// Null in builds without libedit.
std::unique_ptr<LineReader> make_reader(std::vector<std::string> words, const std::filesystem::path& history);

}  // namespace sluice::cli::chat::editing
