// Where prompts are remembered across runs.
#pragma once

#include <string>

#include "sluice/scheduler.h"

namespace sluice::cli {

inline constexpr const char* kCacheDiskMeaning =
    "Keep processed prompts in this folder for later runs, in at most this many bytes: FOLDER:20GB";

// Sets the folder and its bytes from "FOLDER:20GB", or from the folder alone; files that cannot be used are
// named on stderr. Empty: nothing is set.
void read_cache_disk(const std::string& text, SchedulerOptions& options);

}  // namespace sluice::cli
