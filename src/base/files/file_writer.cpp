#include "base/files/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/temporary.h"

namespace sluice::files {
namespace {

constexpr int kMaxTemporaries = 1000;
constexpr mode_t kMode = 0666;                 // masked by the user's umask
constexpr size_t kMaxWrite = size_t{1} << 30;  // Linux writes at most 2 GiB at once

}  // namespace

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;  // other problems with the path show when the file is created
  if (!path_.has_filename() || std::filesystem::is_directory(path_, ignored)) {
    fail(ErrorKind::input, "cannot write '{}': it is a directory, expected a file name", path_.string());
  }
  // The file is moved into place, which would replace a link, pipe or device by a plain file.
  if (std::filesystem::is_symlink(path_, ignored)) path_ = std::filesystem::weakly_canonical(path_);
  if (std::filesystem::exists(path_, ignored) && !std::filesystem::is_regular_file(path_, ignored)) {
    fail(ErrorKind::input, "cannot write '{}': it is a device or pipe, expected a file name", path_.string());
  }
  remove_stale_temporaries(path_);
  for (int attempt = 0; attempt < kMaxTemporaries && !file_.valid(); ++attempt) {
    temporary_ = temporary_beside(path_, attempt);
    file_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (!file_.valid() && errno != EEXIST) break;
    if (file_.valid() && !claim_temporary(file_, temporary_)) file_.close();
  }
  if (!file_.valid()) fail_with_errno("create");
}

FileWriter::~FileWriter() {
  if (file_.valid()) ::unlink(temporary_.c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (!file_.valid()) fail(ErrorKind::internal, "'{}' is written to after its commit", path_.string());
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), std::min(bytes.size(), kMaxWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("write");
    bytes = bytes.subspan(written);
  }
}

void FileWriter::commit() {
  if (!file_.valid()) fail(ErrorKind::internal, "'{}' is committed twice", path_.string());
  if (::fsync(file_.get()) != 0) fail_with_errno("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("replace");
  file_.close();
  // The new name survives a crash only once the folder is on disk too; some file systems cannot sync folders.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid() && ::fsync(directory.get()) != 0 && errno == EIO) fail_with_errno("write");
}

void FileWriter::fail_with_errno(std::string_view action) const {
  const int code = errno;
  const bool exhausted = code == ENOSPC || code == EDQUOT || code == EFBIG || code == EIO;
  fail(exhausted ? ErrorKind::resource : ErrorKind::input, "cannot {} '{}': {}", action, path_.string(),
       std::generic_category().message(code));
}

}  // namespace sluice::files
