#include "layers/feed_forward.h"

namespace sluice::layers {

void Mlp::project(Device& dev, const ops::View& h, const ops::View& y) const {
  const Scope scope = dev.scope();
  const ops::View inner = dev.take({h.dim(0), gate_proj.shape()[0]});
  dev.run(ops::GateUpSwiglu{.x = h, .gate_w = gate_proj, .up_w = up_proj, .out = inner});
  dev.run(ops::Matmul{.x = inner, .w = down_proj, .out = y});
}

void Mlp::forward(Device& dev, const ops::View& h, const ops::View& x) const {
  const Scope scope = dev.scope();
  const ops::View y = dev.take(x.shape);
  project(dev, h, y);
  dev.run(ops::Add{.a = x, .b = y, .out = x});
}

void Router::forward(Device& dev, const ops::View& h, const ops::View& experts,
                     const ops::View& weights) const {
  const Scope scope = dev.scope();
  const ops::View logits = dev.take({h.dim(0), gate.shape()[0]}, ops::DType::f32);
  dev.run(ops::Matmul{.x = h, .w = gate, .out = logits});
  if (selection_bias.present())
    dev.run(ops::RouteSigmoid{.logits = logits,
                              .bias = selection_bias,
                              .experts = experts,
                              .weights = weights,
                              .k = top_k,
                              .groups = groups,
                              .top_groups = top_groups,
                              .scale = scale,
                              .normalize = normalize});
  else
    dev.run(ops::RouteSoftmax{
        .logits = logits, .experts = experts, .weights = weights, .k = top_k, .normalize = normalize});
}

void Moe::forward(Device& dev, const ops::View& h, const ops::View& x) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = h.dim(0);
  const std::int64_t hidden = x.dim(1);
  const ops::View experts = dev.take({tokens, router.top_k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, router.top_k}, ops::DType::f32);
  const ops::View inner = dev.take({tokens, router.top_k, gate_proj.shape()[1]});
  const ops::View expert_out = dev.take({tokens, router.top_k, hidden});
  router.forward(dev, h, experts, weights);
  dev.run(ops::ExpertGateUpSwiglu{
      .x = h, .gate_w = gate_proj, .up_w = up_proj, .experts = experts, .out = inner});
  dev.run(ops::ExpertMatmul{.x = inner, .w = down_proj, .experts = experts, .out = expert_out});
  ops::View shared_out;
  ops::View shared_gate;
  if (shared_expert.gate_proj.present()) {
    shared_out = dev.take({tokens, hidden});
    shared_expert.project(dev, h, shared_out);
  }
  if (shared_expert_gate.present()) {
    shared_gate = dev.take({tokens, 1}, ops::DType::f32);
    dev.run(ops::Matmul{.x = h, .w = shared_expert_gate, .out = shared_gate});
    shared_gate = shared_gate.reshaped({tokens});
  }
  dev.run(ops::MoeCombine{.residual = x,
                          .expert_out = expert_out,
                          .weights = weights,
                          .shared_out = shared_out,
                          .shared_gate = shared_gate,
                          .out = x});
}

}  // namespace sluice::layers
