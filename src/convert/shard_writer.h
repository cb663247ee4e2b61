// Writes a model's tensors into files of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors_writer.h"

namespace sluice::convert {

// A file is closed before a tensor that would make it too large; a tensor above the limit gets its own file.
class ShardWriter {
 public:
  ShardWriter(std::filesystem::path folder, const std::vector<checkpoint::TensorInfo>& tensors,
              uint64_t max_bytes);

  size_t shards() const { return shards_.size(); }
  uint64_t total_bytes() const { return total_bytes_; }
  // Writes the next bytes of `tensor`, in the order of the tensors.
  void write(const std::string& tensor, std::span<const std::byte> bytes);
  // Closes the last file and writes the index.
  void finish(uint64_t parameters);

 private:
  std::string file_name(size_t shard) const;

  std::filesystem::path folder_;
  std::vector<std::vector<checkpoint::TensorInfo>> shards_;
  std::map<std::string, size_t> shard_of_;
  uint64_t total_bytes_ = 0;
  size_t current_ = 0;
  std::optional<checkpoint::SafetensorsWriter> file_;
};

}  // namespace sluice::convert
