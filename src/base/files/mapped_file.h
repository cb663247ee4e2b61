// A file read through the page cache, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace sluice::files {

// A complete file, mapped read-only. It must not be truncated while mapped: reading past its new end raises a
// signal, not an error.
class MappedFile {
 public:
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Views stay valid as long as the mapping, also across moves.
  std::span<const std::byte> bytes(uint64_t offset, uint64_t length) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Lets the system reclaim the memory of mapped bytes that will hardly be read again; they stay valid.
void release_pages(std::span<const std::byte> mapped);

}  // namespace sluice::files
