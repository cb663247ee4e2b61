#include "base/files/temporary.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sluice::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".tmp";

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether temporary_beside() makes such names for `name`.
bool is_temporary_of(std::string_view name, std::string_view candidate) {
  if (!candidate.starts_with(name) || !candidate.ends_with(kEnding)) return false;
  candidate.remove_prefix(name.size());
  if (!candidate.starts_with('.') || candidate.size() <= kEnding.size() + 1) return false;
  candidate = candidate.substr(1, candidate.size() - 1 - kEnding.size());
  const size_t dash = candidate.find('-');
  return dash != std::string_view::npos && is_number(candidate.substr(0, dash)) &&
         is_number(candidate.substr(dash + 1));
}

// The lock is held during the removal, so that no other process can claim it. File systems that cannot lock
// keep their temporaries.
void remove_if_stale(const fs::path& temporary) {
  const FileDescriptor file(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return;
  std::error_code ignored;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(temporary, ignored);
}

}  // namespace

fs::path temporary_beside(const fs::path& path, int attempt) {
  fs::path temporary = path;
  temporary += fmt::format(".{}-{}{}", ::getpid(), attempt, kEnding);
  return temporary;
}

bool claim_temporary(const FileDescriptor& file, const fs::path& temporary) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat opened {};
  struct stat named {};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(temporary.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void remove_stale_temporaries(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string name = path.filename().string();
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (is_temporary_of(name, entry->path().filename().string())) found.push_back(entry->path());
  for (const fs::path& temporary : found) remove_if_stale(temporary);
}

}  // namespace sluice::files
