#include "layers/moe/tiered_experts.h"

#include "layers/moe.h"

namespace sluice::layers::moe {

// Publishes the choices. While the host fetches the experts, the device predicts the next layer's choices.
void TieredExperts::meet(Device& dev, const Input& in, const ops::View& chosen,
                         const ops::View& places) const {
  const std::int64_t tokens = in.h.dim(0);
  const auto fetch = [tier = tier, layer = layer, tokens](bool guessed) {
    return [tier, layer, tokens, guessed] { tier->fetch_missing(layer, tokens, guessed); };
  };
  if (!foresight.present() || !tier->foresees(tokens))
    return dev.meet([&] { tier->publish_and_await(chosen, in.h, places); }, fetch(false));
  const Scope scope = dev.scope();
  if (!dev.planning()) tier->publish_choices(chosen, in.h);
  const ops::View guessed = foresight.guess(dev, in.x);
  dev.meet([&] { tier->await_slots(guessed, places); }, fetch(true));
}

void TieredExperts::forward(Device& dev, const Moe& moe, const Input& in) const {
  const std::int64_t tokens = in.h.dim(0);
  const std::int64_t hidden = in.x.dim(1);
  const std::int64_t k = moe.router.top_k;
  const std::int64_t width = tier->places(layer);  // k, and one more if the shared expert is included
  const ops::View chosen = dev.take({tokens, k}, ops::DType::i32);
  const ops::View places = dev.take({tokens, width}, ops::DType::i32);
  const ops::View weights = dev.take({tokens, k}, ops::DType::f32);
  const ops::View inner = dev.take({tokens, width, moe.gate_proj.shape()[1]});
  const ops::View rows = dev.take({tokens, width * hidden});
  const ops::View out = rows.reshaped({tokens, width, hidden});
  moe.router.choose(dev, in.logits, chosen, weights);
  meet(dev, in, chosen, places);
  const experts::ExpertSet& set = tier->experts(layer, tokens);
  dev.run(ops::ExpertGateUpSwiglu{.x = in.h,
                                  .gate_w = {.stack = {}, .separate = set.gate_proj},
                                  .up_w = {.stack = {}, .separate = set.up_proj},
                                  .experts = places,
                                  .out = inner});
  dev.run(ops::ExpertMatmul{
      .x = inner, .w = {.stack = {}, .separate = set.down_proj}, .experts = places, .out = out});
  if (tier->shares_work(tokens))
    dev.meet([&] { tier->await_host_rows(out); }, [tier = tier] { tier->send_host_rows(); });
  ops::View shared_out;
  if (width > k) {
    shared_out = rows.columns(k * hidden, hidden, {hidden});
  } else {
    shared_out = moe.take_shared(dev, in.h);
    moe.project_shared(dev, in.h, shared_out);
  }
  moe.combine(dev, in, rows.columns(0, k * hidden, {k, hidden}), weights, shared_out);
}

}  // namespace sluice::layers::moe
