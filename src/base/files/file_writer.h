// Files that appear complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/files/file_descriptor.h"

namespace sluice::files {

// Writes to a temporary file beside `path` and moves it there on commit(). Without a commit (an error, an
// exception, a full disk) the temporary is removed, and an older file at `path` stays unchanged. Temporaries
// that killed writers to the same path left are removed first.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Unbuffered: pass large pieces.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Returns once the file is on disk under its name.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(std::string_view action) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

}  // namespace sluice::files
