// A mixture of experts: SwiGLU blocks, of which each token uses the top k.
#pragma once

#include <variant>

#include "layers/mlp.h"
#include "layers/moe/joined_experts.h"
#include "layers/moe/resident_experts.h"
#include "layers/moe/router.h"
#include "layers/moe/spread_experts.h"
#include "layers/moe/streamed_experts.h"
#include "layers/moe/tiered_experts.h"

namespace sluice::layers {

struct Moe {
  moe::Router router;
  // If experts are streamed, these only give their shapes. If several nodes hold them, these are the node's
  // own, the first of which is expert `first_expert`.
  std::int64_t first_expert = 0;
  ops::ExpertWeights gate_proj;    // [experts, intermediate, hidden]
  ops::ExpertWeights up_proj;      // [experts, intermediate, hidden]
  ops::ExpertWeights down_proj;    // [experts, hidden, intermediate]
  Mlp shared_expert;               // absent: no weights
  ops::Weight shared_expert_gate;  // [1, hidden], or absent: the shared expert counts fully
  ops::Weight gates;  // the router's and the shared expert's gate, if they were joined; else absent

  // The place of the experts and how to compute them.
  std::variant<moe::ResidentExperts, moe::JoinedExperts, moe::StreamedExperts, moe::TieredExperts,
               moe::SpreadExperts>
      experts;

  // x [T,hidden] += mixture of the normalised h.
  void forward(Device& dev, const ops::View& h, const ops::View& x) const;

  // For the implementations of experts. Routes every token, and allocates memory for the
  // results.
  moe::Chosen choose(Device& dev, const moe::Input& in) const;
  // The shared expert's output [T,hidden]; absent if there is none.
  ops::View take_shared(Device& dev, const ops::View& h) const;
  void project_shared(Device& dev, const ops::View& h, const ops::View& out) const;
  // x += the weighted sum of the experts' outputs [T,k,hidden] and the shared one's.
  void combine(Device& dev, const moe::Input& in, const ops::View& expert_out, const ops::View& weights,
               const ops::View& shared_out) const;
  void combine(Device& dev, const moe::Input& in, const moe::Chosen& chosen) const {
    combine(dev, in, chosen.out, chosen.weights, chosen.shared_out);
  }

 private:
  moe::Input score(Device& dev, const ops::View& h, const ops::View& x) const;
};

}  // namespace sluice::layers
