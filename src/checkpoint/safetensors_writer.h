// Writes safetensors, one tensor after the other.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_writer.h"
#include "checkpoint/tensor_info.h"

namespace sluice::checkpoint {

// All tensors are declared first, then their bytes are streamed in the same order, so files larger than
// memory can be written. The first tensor begins at a multiple of `alignment` in the file. The file gets its
// name in finish().
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "mlx"}},
                    uint64_t alignment = 8);

  // The next bytes of `tensor`, in any number of pieces.
  void write(std::string_view tensor, std::span<const std::byte> bytes);
  void finish();

 private:
  struct Pending {
    std::string name;
    uint64_t bytes;  // not yet written
  };

  std::string path_;
  std::vector<Pending> pending_;
  size_t current_ = 0;  // the first incomplete one of pending_
  files::FileWriter file_;
};

}  // namespace sluice::checkpoint
