// The second half of a decoder layer: one SwiGLU block, or a mixture of them.
#pragma once

#include "layers/device.h"
#include "layers/router.h"
#include "layers/streamed_experts.h"

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

struct Moe {
  Router router;
  ops::ExpertWeights gate_proj;    // [experts, intermediate, hidden]
  ops::ExpertWeights up_proj;      // [experts, intermediate, hidden]
  ops::ExpertWeights down_proj;    // [experts, hidden, intermediate]
  Mlp shared_expert;               // absent: no weights
  ops::Weight shared_expert_gate;  // [1, hidden], or absent: the shared expert counts fully

  // Where experts are read as they are needed: the matrices above only name their shapes.
  StreamedExperts streamed;

  // What a device's upload joins; else absent.
  ops::Weight gates;  // the router's gate and the shared expert's
  // The experts with the shared one behind the last, [experts+1,..], and I32 [tokens, top_k+1] to choose in,
  // whose last column names the shared one.
  ops::ExpertWeights all_gate_proj;
  ops::ExpertWeights all_up_proj;
  ops::ExpertWeights all_down_proj;
  ops::View choices;

  void forward(Device& dev, const ops::View& h, const ops::View& x) const;

 private:
  struct Scores {
    ops::View logits;       // F32 [T,experts]
    ops::View shared_gate;  // F32 [T,1], or absent
  };
  Scores score(Device& dev, const ops::View& h) const;
  bool joined(std::int64_t tokens) const { return choices.present() && tokens <= choices.dim(0); }
  void forward_joined(Device& dev, const ops::View& h, const Scores& scores, const ops::View& x) const;
  void forward_on_device(Device& dev, const ops::View& h, const Scores& scores, const ops::View& x) const;
  void meet(Device& dev, const ops::View& h, const ops::View& x, const ops::View& chosen,
            const ops::View& places) const;
  void combine(Device& dev, const ops::View& h, const Scores& scores, const ops::View& weights,
               const ops::View& out, const ops::View& x) const;
};

}  // namespace sluice::layers
