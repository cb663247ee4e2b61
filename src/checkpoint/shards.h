// The tensors of a model folder, however they are distributed over files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace sluice::checkpoint {

// Takes the files that model.safetensors.index.json names, or without an index every model*.safetensors.
// Every tensor of those files belongs to the model, and names are unique. Opening reads headers only.
class TensorFiles {
 public:
  explicit TensorFiles(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }         // sorted by name
  const std::vector<const TensorEntry*>& tensors() const { return tensors_; }  // by file, then position
  uint64_t total_bytes() const { return total_bytes_; }

  const TensorEntry* find(std::string_view name) const;  // null if absent
  const TensorEntry& get(std::string_view name) const;
  // The file that holds a tensor of this folder, for readers that bypass the mapping.
  const SafetensorsFile& file_of(const TensorEntry& tensor) const;

 private:
  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::vector<const TensorEntry*> tensors_;
  std::vector<const TensorEntry*> by_name_;
  uint64_t total_bytes_ = 0;
};

}  // namespace sluice::checkpoint
