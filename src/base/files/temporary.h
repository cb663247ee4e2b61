// Temporary files and folders beside what they become, and how those of killed writers are told from others.
#pragma once

#include <filesystem>

#include "base/files/file_descriptor.h"

namespace sluice {

// "model.4711-0.tmp" for "model": the next name that this process may try.
std::filesystem::path temporary_beside(const std::filesystem::path& path, int attempt);

// Locks what this process has just made at `temporary` and has open, which says for as long as it is open
// that somebody writes there. False where another process took it for a killed writer's and removed it before
// that.
bool claim_temporary(const FileDescriptor& file, const std::filesystem::path& temporary);

// Removes what writers to `path` have left that were killed: temporaries of its that no process has locked.
void remove_stale_temporaries(const std::filesystem::path& path);

}  // namespace sluice
