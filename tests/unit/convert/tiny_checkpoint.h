// The checkpoints of tools/golden/convert.py: all values are derived from the tensors' names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/shards.h"
#include "source_dir.h"

namespace sluice {

inline uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t value = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) value = (value ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
  return value;
}

inline uint32_t number(std::string_view name, checkpoint::FileDType dtype, uint64_t random) {
  using checkpoint::FileDType;
  const auto sign = static_cast<uint32_t>(name.find("scale_inv") == std::string_view::npos ? random & 1 : 0);
  const auto exponent = static_cast<uint32_t>((random >> 1) & 7);
  const auto mantissa = static_cast<uint32_t>((random >> 4) & 0x7fffff);
  if (dtype == FileDType::f8_e4m3) return sign << 7 | std::min(mantissa & 0x7f, 0x7eU);
  if (dtype == FileDType::f16) return sign << 15 | (exponent + 8) << 10 | mantissa >> 13;
  const uint32_t wide = sign << 31 | (exponent + 120) << 23 | mantissa;
  return dtype == FileDType::bf16 ? wide >> 16 : wide;
}

inline std::vector<std::byte> numbers(const checkpoint::TensorInfo& tensor) {
  const uint64_t size = size_bytes(tensor.dtype);
  std::vector<std::byte> bytes(size_bytes(tensor).value());
  uint64_t state = fnv1a(std::as_bytes(std::span(tensor.name)));
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    const uint32_t value = number(tensor.name, tensor.dtype, z ^ z >> 31);
    std::memcpy(bytes.data() + at, &value, size);
  }
  return bytes;
}

struct TinyCheckpoint {
  explicit TinyCheckpoint(const std::string& name)
      : golden(read_json_file(std::filesystem::path(test_data()) / "convert" / (name + ".json"))),
        config(golden["config"]) {
    for (const Json& tensor : golden["tensors"])
      tensors.push_back({tensor[0], checkpoint::file_dtype(tensor[1].get<std::string>()).value(), tensor[2]});
  }

  checkpoint::TensorInfo& tensor(std::string_view name) {
    for (checkpoint::TensorInfo& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw std::out_of_range(std::string(name));
  }

  // Returns the folder.
  std::filesystem::path write(const std::filesystem::path& folder, size_t shards = 1) const {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    if (golden.contains("generation"))
      std::ofstream(folder / "generation_config.json") << golden["generation"];
    for (size_t i = 0; i < shards; ++i) {
      const std::vector<checkpoint::TensorInfo> part(
          tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() * i / shards),
          tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() * (i + 1) / shards));
      const std::string name =
          shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards);
      checkpoint::SafetensorsWriter file(folder / name, part, {{"format", "pt"}});
      for (const checkpoint::TensorInfo& tensor : part) file.write(tensor.name, numbers(tensor));
      file.finish();
    }
    return folder;
  }

  Json golden;
  Json config;
  std::vector<checkpoint::TensorInfo> tensors;
};

// Every tensor of a folder as "name dtype shape hash", sorted.
inline std::vector<std::string> describe(const std::filesystem::path& folder) {
  const checkpoint::TensorFiles files(folder);
  std::vector<std::string> lines;
  for (const checkpoint::TensorEntry* tensor : files.tensors())
    lines.push_back(fmt::format("{} {} {} {:016x}", tensor->name, name(tensor->dtype),
                                fmt::join(tensor->shape, ","), fnv1a(tensor->data)));
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace sluice
