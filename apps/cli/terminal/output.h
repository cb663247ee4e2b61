// Standard output: a failed write is an error, not an exit status of 0.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::cli::terminal {

// Opens closed standard streams so that no other file gets their numbers; writing to them still fails.
void guard_standard_streams();
void print_json(const nlohmann::ordered_json& json);
// Writes and flushes text, for output that is read while it is generated.
void print_now(std::string_view text);
// Text for stdout: printable on a terminal, unchanged elsewhere.
std::string for_stdout(std::string_view text);
// Replaces a file atomically.
void write_file(const std::string& path, std::string_view text);
// Flushes; throws if anything could not be written.
void flush_output();

}  // namespace sluice::cli::terminal
