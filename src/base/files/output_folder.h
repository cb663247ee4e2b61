// A folder that appears complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files/file_descriptor.h"

namespace sluice {

// Filled beside its place under a temporary name, moved there on commit(); without a commit it is removed.
// What killed writers to the same place left is removed first.
class OutputFolder {
 public:
  // Fails unless `path` can become a new folder.
  explicit OutputFolder(const std::filesystem::path& path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  // Fails if the disk has less room.
  void require_space(uint64_t bytes) const;
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor folder_;  // open and locked while it is filled
};

}  // namespace sluice
