#include "experts/reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::experts {

namespace {

constexpr std::size_t kProbe = 4096;

std::string reason(int error) {
  return std::generic_category().message(error);
}

// Some file systems accept the O_DIRECT flag but fail the reads.
bool reads_directly(int descriptor) {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kProbe, kProbe), &std::free);
  return memory != nullptr && ::pread(descriptor, memory.get(), kProbe, 0) > 0;
}

// The file's modification time in nanoseconds.
std::int64_t last_written(const struct stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

}  // namespace

bool OpenFile::unchanged() const {
  struct stat status {};
  return written != 0 && ::fstat(descriptor.get(), &status) == 0 && last_written(status) == written;
}

OpenFile open_for_reading(const std::filesystem::path& path, std::uint64_t bytes) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC;
  OpenFile file{files::FileDescriptor(::open(path.c_str(), kFlags | O_DIRECT)), true};
  if (!file.descriptor.valid() || !reads_directly(file.descriptor.get()))
    file = {files::FileDescriptor(::open(path.c_str(), kFlags)), false};
  if (!file.descriptor.valid()) fail(ErrorKind::input, "cannot open '{}': {}", path.string(), reason(errno));
  struct stat status {};
  if (::fstat(file.descriptor.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != bytes)
    fail(ErrorKind::checkpoint, "'{}' had {} bytes a moment ago and has {} now", path.string(), bytes,
         status.st_size);
  constexpr std::int64_t kCoarsestClock = 2'000'000'000;
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  if (now - last_written(status) > kCoarsestClock) file.written = last_written(status);
  return file;
}

std::string read_error(const Request& request, std::int64_t got) {
  if (got < 0) return reason(static_cast<int>(-got));
  if (to_size(got) >= request.needed) return {};
  return fmt::format("the file ends {} bytes too early", request.needed - to_size(got));
}

std::unique_ptr<Reader> make_reader(OpenFiles files) {
  std::string why;
  try {
    return make_uring_reader(files);
  } catch (const Error& error) {
    why = error.what();
  }
  return make_thread_reader(std::move(files), why);
}

}  // namespace sluice::experts
