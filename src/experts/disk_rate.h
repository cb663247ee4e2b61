// Measures how fast a file can be read in the way experts are read.
#pragma once

#include <filesystem>

namespace sluice::experts {

// Bytes per second of many concurrent reads from all over the file, past the page cache where possible; takes
// some tenths of a second.
double measure_disk_rate(const std::filesystem::path& file);

}  // namespace sluice::experts
