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

Moe::Scores Moe::score(Device& dev, const ops::View& h) const {
  const std::int64_t tokens = h.dim(0);
  const std::int64_t experts = router.gate.shape()[0];
  if (gates.present()) {
    const ops::View all = dev.take({tokens, experts + 1}, ops::DType::f32);
    dev.run(ops::Matmul{.x = h, .w = gates, .out = all});
    return {all.columns(0, experts, {experts}), all.columns(experts, 1, {1})};
  }
  Scores scores{dev.take({tokens, experts}, ops::DType::f32), {}};
  dev.run(ops::Matmul{.x = h, .w = router.gate, .out = scores.logits});
  if (shared_expert_gate.present()) {
    scores.shared_gate = dev.take({tokens, 1}, ops::DType::f32);
    dev.run(ops::Matmul{.x = h, .w = shared_expert_gate, .out = scores.shared_gate});
  }
  return scores;
}

// The shared expert as one more choice of every token.
void Moe::forward_joined(Device& dev, const ops::View& h, const Scores& scores, const ops::View& x) const {
  const std::int64_t tokens = h.dim(0);
  const std::int64_t hidden = x.dim(1);
  const std::int64_t k = router.top_k;
  const ops::View all_choices = choices.rows(0, tokens);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View inner = dev.take({tokens, k + 1, all_gate_proj.shape()[1]});
  const ops::View out = dev.take({tokens, k + 1, hidden});
  router.choose(dev, scores.logits, all_choices.columns(0, k, {k}), weights);
  dev.run(ops::ExpertGateUpSwiglu{
      .x = h, .gate_w = all_gate_proj, .up_w = all_up_proj, .experts = all_choices, .out = inner});
  dev.run(ops::ExpertMatmul{.x = inner, .w = all_down_proj, .experts = all_choices, .out = out});
  combine(dev, h, scores, weights, out, x);
}

// `out` [T,k,hidden], or [T,k+1,hidden] with the shared expert's results last; else that is computed here.
void Moe::combine(Device& dev, const ops::View& h, const Scores& scores, const ops::View& weights,
                  const ops::View& out, const ops::View& x) const {
  const std::int64_t tokens = x.dim(0);
  const std::int64_t hidden = x.dim(1);
  const std::int64_t k = router.top_k;
  const ops::View places = out.reshaped({tokens, out.dim(1) * hidden});
  ops::View shared_out;
  if (out.dim(1) > k) {
    shared_out = places.columns(k * hidden, hidden, {hidden});
  } else if (shared_expert.gate_proj.present()) {
    shared_out = dev.take({tokens, hidden});
    shared_expert.project(dev, h, shared_out);
  }
  dev.run(ops::MoeCombine{.residual = x,
                          .expert_out = places.columns(0, k * hidden, {k, hidden}),
                          .weights = weights,
                          .shared_out = shared_out,
                          .shared_gate = scores.shared_gate,
                          .out = x});
}

// Tells the host what was chosen. While it brings that, the device guesses what the next layer will choose.
void Moe::meet(Device& dev, const ops::View& h, const ops::View& x, const ops::View& chosen,
               const ops::View& places) const {
  experts::DeviceTier& tier = *streamed.device;
  const std::int64_t tokens = h.dim(0);
  if (!streamed.foresight.present() || !tier.foresees(tokens))
    return dev.meet([&] { tier.show(chosen, h, places); },
                    [&tier, layer = streamed.layer, tokens] { tier.bring(layer, tokens, false); });
  const Scope scope = dev.scope();
  if (!dev.planning()) tier.tell(chosen, h);
  const ops::View guessed = streamed.foresight.guess(dev, x);
  dev.meet([&] { tier.ask(guessed, places); },
           [&tier, layer = streamed.layer, tokens] { tier.bring(layer, tokens, true); });
}

// The host brings the chosen experts to the device while that waits.
void Moe::forward_on_device(Device& dev, const ops::View& h, const Scores& scores, const ops::View& x) const {
  experts::DeviceTier& tier = *streamed.device;
  const std::int64_t tokens = h.dim(0);
  const ops::View chosen = dev.take({tokens, router.top_k}, ops::DType::i32);
  const ops::View places = dev.take({tokens, tier.places(streamed.layer)}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, router.top_k}, ops::DType::f32);
  const ops::View inner = dev.take({tokens, tier.places(streamed.layer), gate_proj.shape()[1]});
  const ops::View out = dev.take({tokens, tier.places(streamed.layer), x.dim(1)});
  router.choose(dev, scores.logits, chosen, weights);
  meet(dev, h, x, chosen, places);
  const experts::ExpertSet& set = tier.experts(streamed.layer, tokens);
  dev.run(ops::ExpertGateUpSwiglu{.x = h,
                                  .gate_w = {.stack = {}, .separate = set.gate_proj},
                                  .up_w = {.stack = {}, .separate = set.up_proj},
                                  .experts = places,
                                  .out = inner});
  dev.run(ops::ExpertMatmul{
      .x = inner, .w = {.stack = {}, .separate = set.down_proj}, .experts = places, .out = out});
  if (tier.shares_work(tokens)) dev.meet([&] { tier.take(out); }, [&tier] { tier.give(); });
  combine(dev, h, scores, weights, out, x);
}

void Moe::forward(Device& dev, const ops::View& h, const ops::View& x) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = h.dim(0);
  const std::int64_t hidden = x.dim(1);
  const Scores scores = score(dev, h);
  if (streamed.device != nullptr) return forward_on_device(dev, h, scores, x);
  if (joined(tokens)) return forward_joined(dev, h, scores, x);
  const ops::View experts = dev.take({tokens, router.top_k}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, router.top_k}, ops::DType::f32);
  const ops::View expert_out = dev.take({tokens, router.top_k, hidden});
  router.choose(dev, scores.logits, experts, weights);
  ops::View shared_out;
  if (shared_expert.gate_proj.present()) shared_out = dev.take({tokens, hidden});
  const auto project_shared = [&] {
    if (shared_out.present()) shared_expert.project(dev, h, shared_out);
  };
  if (streamed.present()) {
    streamed.forward(dev, h, x, experts, expert_out, project_shared);
  } else {
    const ops::View inner = dev.take({tokens, router.top_k, gate_proj.shape()[1]});
    dev.run(ops::ExpertGateUpSwiglu{
        .x = h, .gate_w = gate_proj, .up_w = up_proj, .experts = experts, .out = inner});
    dev.run(ops::ExpertMatmul{.x = inner, .w = down_proj, .experts = experts, .out = expert_out});
    project_shared();
  }
  dev.run(ops::MoeCombine{.residual = x,
                          .expert_out = expert_out,
                          .weights = weights,
                          .shared_out = shared_out,
                          .shared_gate = scores.shared_gate,
                          .out = x});
}

}  // namespace sluice::layers
