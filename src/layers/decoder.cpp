#include "layers/decoder.h"

namespace sluice::layers {

void DecoderLayer::forward(Device& dev, const Batch& batch, const ops::View& x,
                           const state::LayerState& state) const {
  const Scope scope = dev.scope();
  const ops::View h = dev.take(x.shape);
  const ops::View y = dev.take(x.shape);
  dev.run(ops::RmsNorm{.x = x, .weight = input_layernorm.weight, .out = h, .eps = input_layernorm.eps});
  std::visit([&](const auto& m) { m.forward(dev, batch, h, state, y); }, mixer);
  dev.run(ops::AddRmsNorm{.residual = x,
                          .delta = y,
                          .weight = post_attention_layernorm.weight,
                          .out = h,
                          .eps = post_attention_layernorm.eps});
  std::visit([&](const auto& m) { m.forward(dev, h, x); }, mlp);
}

std::vector<state::LayerStateShape> Decoder::states() const {
  std::vector<state::LayerStateShape> shapes;
  for (const DecoderLayer& layer : layers)
    shapes.push_back(std::visit([](const auto& mixer) { return mixer.state(); }, layer.mixer));
  return shapes;
}

void Decoder::forward(Device& dev, const Batch& batch, const state::StatePool& pool,
                      const ops::View& logits) const {
  const Scope scope = dev.scope();
  const ops::View x = dev.take({batch.tokens, hidden});
  dev.run(ops::Embed{.table = embed_tokens, .ids = batch.ids, .out = x});
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].forward(dev, batch, x, pool.layers()[i]);
  if (!logits.present()) return;
  const ops::View last = x.rows(batch.tokens - logits.dim(0), logits.dim(0));
  dev.run(ops::RmsNorm{.x = last, .weight = norm.weight, .out = last, .eps = norm.eps});
  dev.run(ops::Matmul{.x = last, .w = lm_head, .out = logits});
}

std::size_t Decoder::activation_bytes(std::int64_t tokens, const state::StatePool& pool,
                                      ops::DType activations) const {
  Arena arena;
  Device planning(arena, activations);
  Batch batch;
  batch.tokens = tokens;
  forward(planning, batch, pool, {});
  return arena.peak();
}

}  // namespace sluice::layers
