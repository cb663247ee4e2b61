// Owns the memory that bound weights point to: the mapped files, and the few tensors that could not be used
// as stored.
#pragma once

#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/shards.h"
#include "sluice/ops/buffer.h"
#include "sluice/ops/weight.h"

namespace sluice::checkpoint {

class WeightStore {
 public:
  WeightStore() = default;
  explicit WeightStore(std::unique_ptr<TensorFiles> files) : files_(std::move(files)) {}

  bool has_files() const { return files_ != nullptr; }
  const TensorFiles& files() const { return *files_; }
  // Uninitialised memory that lives as long as the store, aligned to 64 bytes. Tensors share large pages: a
  // page walk every 4 KiB costs a fifth of the speed of reading weights.
  std::byte* allocate(std::size_t bytes);
  std::span<const ops::Weight> keep(std::vector<ops::Weight> experts) {
    return expert_lists_.emplace_back(std::move(experts));
  }
  std::size_t owned_bytes() const { return owned_bytes_; }

 private:
  std::unique_ptr<TensorFiles> files_;
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  std::deque<std::unique_ptr<std::byte, Free>> blocks_;
  std::span<std::byte> left_;  // unused rest of the last block
  std::deque<std::vector<ops::Weight>> expert_lists_;
  std::size_t owned_bytes_ = 0;
};

}  // namespace sluice::checkpoint
