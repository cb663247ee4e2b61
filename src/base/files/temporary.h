// Temporary files and folders beside their final paths, and the removal of those left by killed writers.
#pragma once

#include <filesystem>

#include "base/files/file_descriptor.h"

namespace sluice::files {

// "model.4711-0.tmp" for "model": a name for this process and attempt.
std::filesystem::path temporary_beside(const std::filesystem::path& path, int attempt);

// Locks what this process has just created at `temporary` and has open; the lock marks it as in use while it
// is open. Returns false if another process took it for a killed writer's and removed it before.
bool claim_temporary(const FileDescriptor& file, const std::filesystem::path& temporary);

// Removes temporaries for `path` that no process has locked: their writers were killed.
void remove_stale_temporaries(const std::filesystem::path& path);

}  // namespace sluice::files
