// The router of a mixture of experts.
#pragma once

#include "layers/device.h"

namespace sluice::layers::moe {

// How tokens choose experts.
struct Router {
  ops::Weight gate;  // [experts, hidden]
  std::int64_t top_k = 0;
  bool normalize = false;         // weights sum to 1
  ops::ConstView selection_bias;  // F32 [experts]: DeepSeek's sigmoid router; absent: softmax
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  double scale = 1;

  // From `logits` [T,experts].
  void choose(Device& dev, const ops::View& logits, const ops::View& experts, const ops::View& weights) const;
};

}  // namespace sluice::layers::moe
