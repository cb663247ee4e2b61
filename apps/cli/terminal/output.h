// Standard output: what could not be written is an error, not an exit status of 0.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::cli {

// Opens closed standard streams so that no file is given their numbers; writing to one still fails.
void guard_standard_streams();
void print_json(const nlohmann::ordered_json& json);
// Writes text and flushes, for what is read while it is generated.
void print_now(std::string_view text);
// Replaces a file, whole or not at all.
void write_file(const std::string& path, std::string_view text);
// Flushes; throws where anything could not be written.
void flush_output();

}  // namespace sluice::cli
