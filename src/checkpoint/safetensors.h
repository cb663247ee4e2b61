// Reads safetensors: a length, a JSON header, then the tensors' bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"
#include "checkpoint/tensor_info.h"

namespace sluice::checkpoint {

constexpr uint64_t kSafetensorsLengthBytes = 8;          // the header's length field at the start of the file
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // the format's own limit

struct TensorEntry : TensorInfo {
  // Row-major, little-endian. Some writers do not pad the header, so the address may have any alignment.
  std::span<const std::byte> data;
  uint64_t file_offset = 0;
};

// The tensors of one safetensors file in memory. As strict as the format's own library: tensors must cover
// the data without overlaps, gaps or trailing bytes; duplicate keys are rejected as well.
class Safetensors {
 public:
  // Keeps views into `image`; `where` names it in messages.
  Safetensors(std::span<const std::byte> image, std::string_view where);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }  // in file order
  const TensorEntry* find(std::string_view name) const;                 // null if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<TensorEntry> tensors_;
  std::vector<size_t> by_name_;  // indices into tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

class SafetensorsFile : public Safetensors {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path) : SafetensorsFile(files::MappedFile(path)) {}

  const std::filesystem::path& path() const { return file_.path(); }
  std::span<const std::byte> image() const { return file_.bytes(); }

 private:
  explicit SafetensorsFile(files::MappedFile file)
      : Safetensors(file.bytes(), file.path().string()), file_(std::move(file)) {}

  files::MappedFile file_;
};

}  // namespace sluice::checkpoint
