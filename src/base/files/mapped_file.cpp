#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/file_descriptor.h"

namespace sluice::files {
namespace {

std::span<const std::byte> map(const std::filesystem::path& path) {
  // Non-blocking, or opening a named pipe would wait for someone to write to it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    fail(ErrorKind::input, "cannot open '{}': {}", path.string(), std::generic_category().message(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    fail(ErrorKind::input, "cannot read the size of '{}': {}", path.string(),
         std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::input, "'{}' is {}, expected a regular file", path.string(),
         S_ISDIR(status.st_mode) ? "a directory" : "not a regular file");
  }
  if (status.st_size == 0) fail(ErrorKind::input, "'{}' is empty", path.string());
  const size_t size = status.st_size;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) {
    fail(ErrorKind::resource, "cannot map the {} bytes of '{}': {}", size, path.string(),
         std::generic_category().message(errno));
  }
  // A page walk every 4 KiB costs a fifth of the speed of reading weights. If the system cannot provide large
  // pages, nothing is lost.
  ::madvise(address, size, MADV_HUGEPAGE);
  return {static_cast<const std::byte*>(address), size};
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)), bytes_(map(path_)) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::span<const std::byte> MappedFile::bytes(uint64_t offset, uint64_t length) const {
  if (offset > bytes_.size() || length > bytes_.size() - offset) {
    fail(ErrorKind::input, "'{}' has {} bytes, {} at offset {} were requested", path_.string(), bytes_.size(),
         length, offset);
  }
  return bytes_.subspan(offset, length);
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data());
  const uintptr_t first = (begin + page - 1) / page * page;  // complete pages: the others are shared
  const uintptr_t last = (begin + mapped.size()) / page * page;
  if (first < last)
    ::madvise(const_cast<std::byte*>(mapped.data()) + (first - begin), last - first, MADV_DONTNEED);
}

}  // namespace sluice::files
