// The tensors of a Hugging Face checkpoint, each used once.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "checkpoint/shards.h"
#include "convert/plan.h"

namespace sluice::convert {

// Records which tensors were taken, so that an unknown one is an error, not a silent loss.
class Source {
 public:
  Source(const checkpoint::TensorFiles& files, checkpoint::Fp8Blocks blocks)
      : files_(files), blocks_(blocks) {}

  const checkpoint::TensorFiles& files() const { return files_; }
  bool has(std::string_view name) const { return files_.find(name) != nullptr; }
  // The tensor with its block scales, if it is E4M3. Throws unless it has that many dimensions and a type
  // that can be converted.
  Piece take(const std::string& name, size_t dimensions);
  // The first tensor that is neither taken nor dropped by the caller's rule; null if there is none.
  template <class Dropped>
  const checkpoint::TensorEntry* left_over(Dropped&& dropped) const {
    for (const checkpoint::TensorEntry* tensor : files_.tensors())
      if (!taken_.contains(tensor->name) && !dropped(tensor->name)) return tensor;
    return nullptr;
  }
  uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  const checkpoint::TensorEntry* take_scale(const checkpoint::TensorEntry& weight);
  void mark(const checkpoint::TensorEntry& tensor);

  const checkpoint::TensorFiles& files_;
  checkpoint::Fp8Blocks blocks_;
  std::set<std::string, std::less<>> taken_;
  uint64_t bytes_taken_ = 0;
};

}  // namespace sluice::convert
