// The option for caching prompts across runs.
#pragma once

#include <string>

#include "sluice/scheduler.h"

namespace sluice::cli::options {

inline constexpr const char* kCacheDiskMeaning =
    "Keep processed prompts in this folder for later runs, in at most this many bytes: FOLDER:20GB";

// Sets the folder and its size from "FOLDER:20GB", or from the folder only; files that cannot be used are
// reported on stderr. Empty: sets nothing.
void read_cache_disk(const std::string& text, SchedulerOptions& options);

}  // namespace sluice::cli::options
