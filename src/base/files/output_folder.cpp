#include "base/files/output_folder.h"

#include <fcntl.h>

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/temporary.h"

namespace sluice::files {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxFolders = 1000;

fs::path without_trailing_slash(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

void refuse_existing(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() != fs::file_type::directory || !fs::is_empty(path, error) || error) {
    fail(ErrorKind::input, "cannot write to '{}': it exists, expected a new or an empty folder",
         path.string());
  }
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path) : path_(without_trailing_slash(path)) {
  refuse_existing(path_);
  remove_stale_temporaries(path_);
  std::error_code error;
  for (int attempt = 0; attempt < kMaxFolders; ++attempt) {
    fs::path temporary = temporary_beside(path_, attempt);
    if (fs::create_directory(temporary, error)) {
      folder_ = FileDescriptor(::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!folder_.valid() || !claim_temporary(folder_, temporary)) continue;
      temporary_ = std::move(temporary);
      return;
    }
    if (error) break;
  }
  fail(ErrorKind::input, "cannot create a folder beside '{}': {}", path_.string(), error.message());
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void OutputFolder::require_space(uint64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(temporary_, error);
  if (error || space.available >= bytes) return;
  fail(ErrorKind::resource, "the disk of '{}' has {} bytes free, the model needs {}", path_.string(),
       space.available, bytes);
}

void OutputFolder::commit() {
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) fail(ErrorKind::input, "cannot create '{}': {}", path_.string(), error.message());
  temporary_.clear();
  folder_.close();
}

}  // namespace sluice::files
