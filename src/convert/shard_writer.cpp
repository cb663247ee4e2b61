#include "convert/shard_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace sluice::convert {

ShardWriter::ShardWriter(std::filesystem::path folder, const std::vector<checkpoint::TensorInfo>& tensors,
                         uint64_t max_bytes)
    : folder_(std::move(folder)) {
  uint64_t filled = 0;
  for (const checkpoint::TensorInfo& tensor : tensors) {
    const uint64_t bytes = checkpoint::size_bytes(tensor).value();
    if (shards_.empty() || filled + bytes > max_bytes) {
      shards_.emplace_back();
      filled = 0;
    }
    filled += bytes;
    total_bytes_ += bytes;
    shards_.back().push_back(tensor);
    shard_of_[tensor.name] = shards_.size() - 1;
  }
}

std::string ShardWriter::file_name(size_t shard) const {
  if (shards_.size() == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards_.size());
}

void ShardWriter::write(const std::string& tensor, std::span<const std::byte> bytes) {
  const size_t shard = shard_of_.at(tensor);
  if (!file_ || shard != current_) {
    if (file_) file_->finish();
    file_.emplace(folder_ / file_name(shard), shards_[shard]);
    current_ = shard;
  }
  file_->write(tensor, bytes);
}

void ShardWriter::finish(uint64_t parameters) {
  if (file_) file_->finish();
  file_.reset();
  Json index{{"metadata", {{"total_size", total_bytes_}, {"total_parameters", parameters}}}};
  for (const auto& [tensor, shard] : shard_of_) index["weight_map"][tensor] = file_name(shard);
  files::FileWriter file(folder_ / "model.safetensors.index.json");
  file.write(index.dump(4));
  file.commit();
}

}  // namespace sluice::convert
