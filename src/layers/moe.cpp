#include "layers/moe.h"

namespace sluice::layers {

moe::Input Moe::score(Device& dev, const ops::View& h, const ops::View& x) const {
  const std::int64_t tokens = h.dim(0);
  const std::int64_t count = router.gate.shape()[0];
  if (gates.present()) {
    const ops::View all = dev.take({tokens, count + 1}, ops::DType::f32);
    dev.run(ops::Matmul{.x = h, .w = gates, .out = all});
    return {h, x, all.columns(0, count, {count}), all.columns(count, 1, {1})};
  }
  moe::Input in{h, x, dev.take({tokens, count}, ops::DType::f32), {}};
  const ops::Matmul scores{.x = h, .w = router.gate, .out = in.logits};
  if (shared_expert_gate.present()) {
    in.shared_gate = dev.take({tokens, 1}, ops::DType::f32);
    dev.run_together(scores, ops::Matmul{.x = h, .w = shared_expert_gate, .out = in.shared_gate});
  } else {
    dev.run(scores);
  }
  return in;
}

ops::View Moe::take_shared(Device& dev, const ops::View& h) const {
  return shared_expert.gate_proj.present() ? dev.take(h.shape) : ops::View{};
}

moe::Chosen Moe::choose(Device& dev, const moe::Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t k = router.top_k;
  const moe::Chosen chosen{.experts = dev.take({tokens, k}, ops::DType::i32),
                           .weights = dev.take({tokens, k}, ops::DType::f32),
                           .out = dev.take({tokens, k, in.x.dim(1)}),
                           .shared_out = take_shared(dev, in.h)};
  router.choose(dev, in.logits, chosen.experts, chosen.weights);
  return chosen;
}

void Moe::project_shared(Device& dev, const ops::View& h, const ops::View& out) const {
  if (out.present()) shared_expert.project(dev, h, out);
}

void Moe::combine(Device& dev, const moe::Input& in, const ops::View& expert_out, const ops::View& weights,
                  const ops::View& shared_out) const {
  dev.run(ops::MoeCombine{.residual = in.x,
                          .expert_out = expert_out,
                          .weights = weights,
                          .shared_out = shared_out,
                          .shared_gate = in.shared_gate,
                          .out = in.x});
}

void Moe::forward(Device& dev, const ops::View& h, const ops::View& x) const {
  const Scope scope = dev.scope();
  const moe::Input in = score(dev, h, x);
  std::visit([&](const auto& kind) { kind.forward(dev, *this, in); }, experts);
}

}  // namespace sluice::layers
