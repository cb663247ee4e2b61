#include "layers/attention.h"

#include <cmath>

namespace sluice::layers {

double Attention::scale() const {
  return 1 / std::sqrt(head_dim);
}

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
  dev.run_together(ops::Matmul{.x = x, .w = q_proj, .out = to.q.reshaped({tokens, heads * query_dim})},
                   ops::Matmul{.x = x, .w = k_proj, .out = to.k.reshaped({tokens, keys})},
                   ops::Matmul{.x = x, .w = v_proj, .out = to.v.reshaped({tokens, keys})});
  return to;
}

void Attention::append(Device& dev, const Pass& pass, const Projections& to,
                       const state::KvCache& cache) const {
  dev.run(ops::QkNormRopeAppend{.q = to.q,
                                .k = to.k,
                                .v = to.v,
                                .q_weight = q_norm.weight,
                                .k_weight = k_norm.weight,
                                .inv_freq = rotary->view(),
                                .positions = pass.positions,
                                .k_cache = cache.keys,
                                .v_cache = cache.values,
                                .seq_starts = pass.seq_starts,
                                .slots = pass.slots,
                                .page_table = pass.page_table,
                                .eps = q_norm.eps,
                                .mscale = rotary->mscale,
                                .start = pass.start});
}

void Attention::append(Device& dev, const Pass& pass, const Projections& to,
                       const state::PackedKvCache& cache) const {
  dev.run(ops::QkNormRopeTurboquantAppend{.q = to.q,
                                          .k = to.k,
                                          .v = to.v,
                                          .q_weight = q_norm.weight,
                                          .k_weight = k_norm.weight,
                                          .inv_freq = rotary->view(),
                                          .positions = pass.positions,
                                          .signs = cache.signs,
                                          .k_codes = cache.key_codes,
                                          .v_codes = cache.value_codes,
                                          .k_norms = cache.key_norms,
                                          .v_norms = cache.value_norms,
                                          .seq_starts = pass.seq_starts,
                                          .slots = pass.slots,
                                          .page_table = pass.page_table,
                                          .eps = q_norm.eps,
                                          .mscale = rotary->mscale,
                                          .k_bits = cache.key_bits,
                                          .v_bits = cache.value_bits,
                                          .norm = ops::TurboquantNorm::matched,
                                          .start = pass.start});
}

void Attention::attend(Device& dev, const Pass& pass, const Projections& turned, const state::KvCache& cache,
                       const ops::View& out) const {
  dev.run(ops::Attention{.q = turned.q,
                         .k_cache = cache.keys,
                         .v_cache = cache.values,
                         .out = out,
                         .seq_starts = pass.seq_starts,
                         .slots = pass.slots,
                         .page_table = pass.page_table,
                         .start = pass.start,
                         .scale = scale()});
}

// A prompt sees the rows of its own pass unrounded, a generated token reads all rows from the cache.
void Attention::attend(Device& dev, const Pass& pass, const Projections& turned,
                       const state::PackedKvCache& cache, const ops::View& out) const {
  const bool generated = pass.generated();
  dev.run(ops::TurboquantAttention{.q = turned.q,
                                   .k_codes = cache.key_codes,
                                   .v_codes = cache.value_codes,
                                   .k_norms = cache.key_norms,
                                   .v_norms = cache.value_norms,
                                   .signs = cache.signs,
                                   .k_new = generated ? ops::View{} : turned.k,
                                   .v_new = generated ? ops::View{} : turned.v,
                                   .out = out,
                                   .seq_starts = pass.seq_starts,
                                   .slots = pass.slots,
                                   .page_table = pass.page_table,
                                   .k_bits = cache.key_bits,
                                   .v_bits = cache.value_bits,
                                   .length = {},
                                   .start = pass.start,
                                   .ring_start = {},
                                   .scale = scale()});
}

void Attention::forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
                        const ops::View& y) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = pass.tokens;
  const std::int64_t width = heads * head_dim;
  const Projections parts = project(dev, x);
  const ops::View& projected = parts.q;
  const ops::View out = dev.take({tokens, heads, head_dim});
  const ops::View q = projected.columns(0, head_dim, {head_dim});  // [T,heads,head_dim], beside the gate
  const auto use = [&](const auto& cache) {
    append(dev, pass, {q, parts.k, parts.v}, cache);
    attend(dev, pass, {q, parts.k, parts.v}, cache, out);
  };
  if (const auto* packed = std::get_if<state::PackedKvCache>(&state))
    use(*packed);
  else
    use(std::get<state::KvCache>(state));
  if (gated)
    dev.run(
        ops::SigmoidGate{.x = out, .gate = projected.columns(head_dim, head_dim, {head_dim}), .out = out});
  dev.run(ops::Matmul{.x = out.reshaped({tokens, width}), .w = o_proj, .out = y});
}

}  // namespace sluice::layers
