// Where prompts are remembered across runs.
#pragma once

#include <string>

#include "sluice/scheduler.h"

namespace sluice::cli {

inline constexpr const char* kCacheDiskMeaning =
    "Remember prompts across runs in a folder, up to so many bytes: FOLDER:20GB";

// Sets the folder and its bytes from "FOLDER:20GB", or from the folder alone; files that cannot be used are
// named on stderr. Empty: nothing is set.
void read_cache_disk(const std::string& text, SchedulerOptions& options);

}  // namespace sluice::cli
