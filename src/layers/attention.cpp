#include "layers/attention.h"

#include <cmath>

namespace sluice::layers {

Attention::Projections Attention::project(Device& dev, const ops::View& x) const {
  const std::int64_t tokens = x.dim(0);
  const std::int64_t query_dim = head_dim * (gated ? 2 : 1);
  const std::int64_t keys = kv_heads * head_dim;
  if (qkv_proj.present()) {
    const ops::View all = dev.take({tokens, qkv_proj.shape()[0]});
    dev.run(ops::Matmul{.x = x, .w = qkv_proj, .out = all});
    return {all.columns(0, heads * query_dim, {heads, query_dim}),
            all.columns(heads * query_dim, keys, {kv_heads, head_dim}),
            all.columns(heads * query_dim + keys, keys, {kv_heads, head_dim})};
  }
  const Projections to{dev.take({tokens, heads, query_dim}), dev.take({tokens, kv_heads, head_dim}),
                       dev.take({tokens, kv_heads, head_dim})};
  dev.run(ops::Matmul{.x = x, .w = q_proj, .out = to.q.reshaped({tokens, heads * query_dim})});
  dev.run(ops::Matmul{.x = x, .w = k_proj, .out = to.k.reshaped({tokens, keys})});
  dev.run(ops::Matmul{.x = x, .w = v_proj, .out = to.v.reshaped({tokens, keys})});
  return to;
}

void Attention::append(Device& dev, const Batch& batch, const Projections& to,
                       const state::LayerState& state) const {
  if (state.packed())
    dev.run(ops::QkNormRopeTurboquantAppend{.q = to.q,
                                            .k = to.k,
                                            .v = to.v,
                                            .q_weight = q_norm.weight,
                                            .k_weight = k_norm.weight,
                                            .inv_freq = rotary->view(),
                                            .positions = batch.positions,
                                            .signs = state.signs,
                                            .k_codes = batch.of(state.first),
                                            .v_codes = batch.of(state.second),
                                            .k_norms = batch.of(state.first_norms),
                                            .v_norms = batch.of(state.second_norms),
                                            .seq_starts = batch.seq_starts,
                                            .slots = batch.slots,
                                            .eps = q_norm.eps,
                                            .mscale = rotary->mscale,
                                            .k_bits = state.first_bits,
                                            .v_bits = state.second_bits,
                                            .norm = ops::TurboquantNorm::matched,
                                            .start = batch.start});
  else
    dev.run(ops::QkNormRopeAppend{.q = to.q,
                                  .k = to.k,
                                  .v = to.v,
                                  .q_weight = q_norm.weight,
                                  .k_weight = k_norm.weight,
                                  .inv_freq = rotary->view(),
                                  .positions = batch.positions,
                                  .k_cache = batch.of(state.first),
                                  .v_cache = batch.of(state.second),
                                  .seq_starts = batch.seq_starts,
                                  .slots = batch.slots,
                                  .eps = q_norm.eps,
                                  .mscale = rotary->mscale,
                                  .start = batch.start});
}

// A prompt sees the rows of its own chunk as they are, a generated token all rows from the cache.
void Attention::attend(Device& dev, const Batch& batch, const Projections& turned,
                       const state::LayerState& state, const ops::View& out) const {
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const bool generated = batch.several();
  if (state.packed())
    dev.run(ops::TurboquantAttention{.q = turned.q,
                                     .k_codes = batch.of(state.first),
                                     .v_codes = batch.of(state.second),
                                     .k_norms = batch.of(state.first_norms),
                                     .v_norms = batch.of(state.second_norms),
                                     .signs = state.signs,
                                     .k_new = generated ? ops::View{} : turned.k,
                                     .v_new = generated ? ops::View{} : turned.v,
                                     .out = out,
                                     .seq_starts = batch.seq_starts,
                                     .slots = batch.slots,
                                     .k_bits = state.first_bits,
                                     .v_bits = state.second_bits,
                                     .length = {},
                                     .start = batch.start,
                                     .ring_start = {},
                                     .scale = scale});
  else
    dev.run(ops::Attention{.q = turned.q,
                           .k_cache = batch.of(state.first),
                           .v_cache = batch.of(state.second),
                           .out = out,
                           .seq_starts = batch.seq_starts,
                           .slots = batch.slots,
                           .start = batch.start,
                           .scale = scale});
}

void Attention::forward(Device& dev, const Batch& batch, const ops::View& x, const state::LayerState& state,
                        const ops::View& y) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = batch.tokens;
  const std::int64_t width = heads * head_dim;
  const auto [projected, k, v] = project(dev, x);
  const ops::View out = dev.take({tokens, heads, head_dim});
  const ops::View q = projected.columns(0, head_dim, {head_dim});  // [T,heads,head_dim], beside the gate
  append(dev, batch, {q, k, v}, state);
  attend(dev, batch, {q, k, v}, state, out);
  if (gated)
    dev.run(
        ops::SigmoidGate{.x = out, .gate = projected.columns(head_dim, head_dim, {head_dim}), .out = out});
  dev.run(ops::Matmul{.x = out.reshaped({tokens, width}), .w = o_proj, .out = y});
}

}  // namespace sluice::layers
