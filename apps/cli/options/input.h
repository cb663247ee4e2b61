// Text and token ids given to a command: on its command line, in a file, or through a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli::options {

// A complete file; "-" is standard input.
std::string read_input(const std::string& path);

// The text of an argument: itself, standard input for "-", a file for "@FILE". Without an argument: the file
// `path` if that is not empty, otherwise piped input, otherwise nothing.
std::optional<std::string> input_text(const std::optional<std::string>& argument, const std::string& path);

// Ids as "1,2,3", or in a file as "@FILE". `option` is named in messages.
std::vector<std::int32_t> parse_tokens(const std::string& text, const char* option);

}  // namespace sluice::cli::options
