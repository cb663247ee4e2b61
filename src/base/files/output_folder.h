// A folder that appears complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files/file_descriptor.h"

namespace sluice::files {

// Filled under a temporary name beside its final path and moved there on commit(); removed without a commit.
// Temporaries that killed writers to the same path left are removed first.
class OutputFolder {
 public:
  // Throws unless a new folder can be created at `path`.
  explicit OutputFolder(const std::filesystem::path& path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  // Throws if the disk has less space.
  void require_space(uint64_t bytes) const;
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor folder_;  // open and locked while it is filled
};

}  // namespace sluice::files
