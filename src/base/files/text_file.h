// Small text files, read completely.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sluice::files {

// Reads a regular file of at most `max_bytes`; pipes and devices, which may never end, are rejected.
std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes = std::size_t{64} << 20);
// Nothing if the file does not exist.
std::optional<std::string> read_text_file_if_present(const std::filesystem::path& path);

}  // namespace sluice::files
