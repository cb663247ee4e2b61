// The second half of a decoder layer: one SwiGLU block, or a mixture of them.
#pragma once

#include "layers/device.h"

namespace sluice::layers {

struct Mlp {
  ops::Weight gate_proj;  // [intermediate, hidden]
  ops::Weight up_proj;    // [intermediate, hidden]
  ops::Weight down_proj;  // [hidden, intermediate]

  // y [T,hidden] from h [T,hidden].
  void project(Device& dev, const ops::View& h, const ops::View& y) const;
  // x [T,hidden] += MLP of the normalised h.
  void forward(Device& dev, const ops::View& h, const ops::View& x) const;
};

// How tokens choose experts.
struct Router {
  ops::Weight gate;  // [experts, hidden]
  std::int64_t top_k = 0;
  bool normalize = false;         // weights sum to 1
  ops::ConstView selection_bias;  // F32 [experts]: DeepSeek's sigmoid router; absent: softmax
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  double scale = 1;

  void forward(Device& dev, const ops::View& h, const ops::View& experts, const ops::View& weights) const;
};

struct Moe {
  Router router;
  ops::ExpertWeights gate_proj;    // [experts, intermediate, hidden]
  ops::ExpertWeights up_proj;      // [experts, intermediate, hidden]
  ops::ExpertWeights down_proj;    // [experts, hidden, intermediate]
  Mlp shared_expert;               // absent: no weights
  ops::Weight shared_expert_gate;  // [1, hidden], or absent: the shared expert counts fully

  void forward(Device& dev, const ops::View& h, const ops::View& x) const;
};

}  // namespace sluice::layers
