#include "layers/decoder.h"

#include "base/integer_cast.h"

namespace sluice::layers {

void DecoderLayer::forward(Device& dev, const Pass& pass, const ops::View& x,
                           const state::LayerState& state) const {
  const Scope scope = dev.scope();
  const ops::View h = dev.take(x.shape);
  const ops::View y = dev.take(x.shape);
  dev.run(ops::RmsNorm{.x = x, .weight = input_layernorm.weight, .out = h, .eps = input_layernorm.eps});
  std::visit([&](const auto& m) { m.forward(dev, pass, h, state, y); }, mixer);
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

// Contiguous rows at the end are normalised in place, others are gathered.
ops::View Decoder::normed_rows(Device& dev, const Pass& pass, const ops::View& x, std::int64_t rows) const {
  const auto norm_rows = [&](const ops::View& from, const ops::View& to) {
    dev.run(ops::RmsNorm{.x = from, .weight = norm.weight, .out = to, .eps = norm.eps});
  };
  if (pass.logit_rows.empty() || pass.logit_rows.front() == pass.tokens - rows) {
    const ops::View last = x.rows(pass.tokens - rows, rows);
    norm_rows(last, last);
    return last;
  }
  const ops::View gathered = dev.take({rows, hidden});
  for (std::int64_t i = 0; i < rows; ++i)
    norm_rows(x.rows(pass.logit_rows[to_size(i)], 1), gathered.rows(i, 1));
  return gathered;
}

void Decoder::run_layers(Device& dev, const Pass& pass, std::span<const state::LayerState> states,
                         const ops::View& x) const {
  if (rows_in && !dev.planning())
    rows_in(pass, x);
  else
    dev.run(ops::Embed{.table = embed_tokens, .ids = pass.ids, .out = x});
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].forward(dev, pass, x, states[i]);
  if (rows_out && !dev.planning()) rows_out(pass, x);
}

void Decoder::run_head(Device& dev, const Pass& pass, const ops::View& x, const ops::View& logits) const {
  if (rows_back && !dev.planning()) rows_back(pass, x);
  dev.run(ops::Matmul{.x = normed_rows(dev, pass, x, logits.dim(0)), .w = lm_head, .out = logits});
}

void Decoder::forward(Device& dev, const Pass& pass, std::span<const state::LayerState> states,
                      const ops::View& logits) const {
  dev.set_phase(pass.phase);
  const Scope scope = dev.scope();
  const ops::View x = dev.take({pass.tokens, hidden});
  run_layers(dev, pass, states, x);
  if (logits.present()) run_head(dev, pass, x, logits);
}

void Decoder::arrive(Device& dev, const Pass& pass, const ops::View& logits) const {
  dev.set_phase(pass.phase);
  const Scope scope = dev.scope();
  run_head(dev, pass, dev.take({pass.tokens, hidden}), logits);
}

std::size_t Decoder::activation_bytes(std::int64_t tokens, const state::CacheFormat& cache,
                                      ops::DType activations) const {
  const std::vector<state::LayerState> planned = state::plan(states(), {}, cache);
  Arena arena;
  Device planning(arena, activations);
  Pass pass;  // of a prompt, which needs more than generated tokens
  pass.tokens = tokens;
  forward(planning, pass, planned, {});
  return arena.peak();
}

}  // namespace sluice::layers
