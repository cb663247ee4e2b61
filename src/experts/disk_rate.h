// How fast a file can be read in the way experts are.
#pragma once

#include <filesystem>

namespace sluice::experts {

// Bytes a second of many reads at once from all over the file, past the page cache where that is possible;
// measured now, in some tenths of a second.
double measure_disk_rate(const std::filesystem::path& file);

}  // namespace sluice::experts
