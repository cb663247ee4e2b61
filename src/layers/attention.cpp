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

void Attention::attend(Device& dev, const Batch& batch, const Projections& rotated,
                       const state::LayerState& state, const ops::View& out) const {
  dev.run(ops::KvAppend{.k = rotated.k,
                        .v = rotated.v,
                        .k_cache = batch.of(state.first),
                        .v_cache = batch.of(state.second),
                        .seq_starts = batch.seq_starts,
                        .slots = batch.slots,
                        .start = batch.start});
  dev.run(ops::Attention{.q = rotated.q,
                         .k_cache = batch.of(state.first),
                         .v_cache = batch.of(state.second),
                         .out = out,
                         .seq_starts = batch.seq_starts,
                         .slots = batch.slots,
                         .start = batch.start,
                         .scale = 1 / std::sqrt(static_cast<double>(head_dim))});
}

// A prompt sees the rows of its own chunk as they are, a generated token all rows from the cache.
void Attention::attend_packed(Device& dev, const Batch& batch, const Projections& rotated,
                              const state::LayerState& state, const ops::View& out) const {
  const bool generated = batch.several();
  dev.run(ops::TurboquantAppend{.k = rotated.k,
                                .v = rotated.v,
                                .signs = state.signs,
                                .k_codes = batch.of(state.first),
                                .v_codes = batch.of(state.second),
                                .k_norms = batch.of(state.first_norms),
                                .v_norms = batch.of(state.second_norms),
                                .seq_starts = batch.seq_starts,
                                .slots = batch.slots,
                                .k_bits = state.first_bits,
                                .v_bits = state.second_bits,
                                .norm = ops::TurboquantNorm::matched,
                                .start = batch.start});
  dev.run(ops::TurboquantAttention{.q = rotated.q,
                                   .k_codes = batch.of(state.first),
                                   .v_codes = batch.of(state.second),
                                   .k_norms = batch.of(state.first_norms),
                                   .v_norms = batch.of(state.second_norms),
                                   .signs = state.signs,
                                   .k_new = generated ? ops::View{} : rotated.k,
                                   .v_new = generated ? ops::View{} : rotated.v,
                                   .out = out,
                                   .seq_starts = batch.seq_starts,
                                   .slots = batch.slots,
                                   .k_bits = state.first_bits,
                                   .v_bits = state.second_bits,
                                   .length = {},
                                   .start = batch.start,
                                   .ring_start = {},
                                   .scale = 1 / std::sqrt(static_cast<double>(head_dim))});
}

void Attention::forward(Device& dev, const Batch& batch, const ops::View& x, const state::LayerState& state,
                        const ops::View& y) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = batch.tokens;
  const std::int64_t width = heads * head_dim;
  const auto [projected, k, v] = project(dev, x);
  const ops::View out = dev.take({tokens, heads, head_dim});
  const ops::View q = projected.columns(0, head_dim, {head_dim});  // [T,heads,head_dim], beside the gate
  dev.run(ops::QkNormRope{.q = q,
                          .k = k,
                          .q_weight = q_norm.weight,
                          .k_weight = k_norm.weight,
                          .inv_freq = rotary->view(),
                          .positions = batch.positions,
                          .eps = q_norm.eps,
                          .mscale = rotary->mscale});
  if (state.packed())
    attend_packed(dev, batch, {q, k, v}, state, out);
  else
    attend(dev, batch, {q, k, v}, state, out);
  if (gated)
    dev.run(
        ops::SigmoidGate{.x = out, .gate = projected.columns(head_dim, head_dim, {head_dim}), .out = out});
  dev.run(ops::Matmul{.x = out.reshaped({tokens, width}), .w = o_proj, .out = y});
}

}  // namespace sluice::layers
