// Text and token ids that a command is given: on its command line, in a file, or through a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

// The whole of a file; "-" is the standard input.
std::string read_input(const std::string& path);

// The text of an argument: itself, the standard input for "-", a file for "@FILE". Where it is absent: the
// file `path` if that is not empty, else what comes through a pipe, else nothing.
std::optional<std::string> input_text(const std::optional<std::string>& argument, const std::string& path);

// Ids as "1,2,3", or in a file as "@FILE". `option` is named in errors.
std::vector<std::int32_t> parse_tokens(const std::string& text, const char* option);

}  // namespace sluice::cli
