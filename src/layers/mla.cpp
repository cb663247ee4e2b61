#include "layers/mla.h"

#include <cmath>

namespace sluice::layers {

void Mla::project(Device& dev, const ops::View& x, const ops::View& q, const ops::View& kv) const {
  const ops::Matmul latents{.x = x, .w = kv_a_proj_with_mqa, .out = kv};
  if (q_proj.present()) return dev.run_together(ops::Matmul{.x = x, .w = q_proj, .out = q}, latents);
  const Scope scope = dev.scope();
  const ops::View compressed = dev.take({x.dim(0), q_a_proj.shape()[0]});
  dev.run_together(ops::Matmul{.x = x, .w = q_a_proj, .out = compressed}, latents);
  dev.run(ops::RmsNorm{
      .x = compressed, .weight = q_a_layernorm.weight, .out = compressed, .eps = q_a_layernorm.eps});
  dev.run(ops::Matmul{.x = compressed, .w = q_b_proj, .out = q});
}

double Mla::scale() const {
  return rotary->score_scale / std::sqrt(nope + rope);
}

void Mla::attend(Device& dev, const Pass& pass, const Rotated& rotated, const state::LatentCache& cache,
                 const ops::View& out) const {
  dev.run(ops::MlaAppend{.kv_latent = rotated.kv_latent,
                         .k_pe = rotated.k_pe,
                         .latent_cache = cache.latents,
                         .rope_cache = cache.rope_keys,
                         .seq_starts = pass.seq_starts,
                         .slots = pass.slots,
                         .page_table = pass.page_table,
                         .start = pass.start});
  dev.run(ops::MlaAttention{.q_latent = rotated.q_latent,
                            .q_pe = rotated.q_pe,
                            .latent_cache = cache.latents,
                            .rope_cache = cache.rope_keys,
                            .out = out,
                            .seq_starts = pass.seq_starts,
                            .slots = pass.slots,
                            .page_table = pass.page_table,
                            .start = pass.start,
                            .scale = scale()});
}

// A prompt sees the rows of its own pass unrounded, a generated token reads all rows from the cache.
void Mla::attend(Device& dev, const Pass& pass, const Rotated& rotated, const state::PackedLatentCache& cache,
                 const ops::View& out) const {
  dev.run(ops::MlaTurboquantAppend{.kv_latent = rotated.kv_latent,
                                   .k_pe = rotated.k_pe,
                                   .signs = cache.signs,
                                   .latent_codes = cache.codes,
                                   .latent_norms = cache.norms,
                                   .rope_cache = cache.rope_keys,
                                   .seq_starts = pass.seq_starts,
                                   .slots = pass.slots,
                                   .page_table = pass.page_table,
                                   .bits = cache.bits,
                                   .norm = ops::TurboquantNorm::matched,
                                   .start = pass.start});
  dev.run(ops::MlaTurboquantAttention{.q_latent = rotated.q_latent,
                                      .q_pe = rotated.q_pe,
                                      .latent_codes = cache.codes,
                                      .latent_norms = cache.norms,
                                      .rope_cache = cache.rope_keys,
                                      .signs = cache.signs,
                                      .latent_new = pass.generated() ? ops::View{} : rotated.kv_latent,
                                      .out = out,
                                      .seq_starts = pass.seq_starts,
                                      .slots = pass.slots,
                                      .page_table = pass.page_table,
                                      .bits = cache.bits,
                                      .start = pass.start,
                                      .scale = scale()});
}

void Mla::forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
                  const ops::View& y) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = pass.tokens;
  const ops::View q = dev.take({tokens, heads, nope + rope});
  const ops::View kv = dev.take({tokens, rank + rope});
  const ops::View q_latent = dev.take({tokens, heads, rank});
  const ops::View latent = dev.take({tokens, heads, rank});
  const ops::View out = dev.take({tokens, heads, value_dim});
  project(dev, x, q.reshaped({tokens, heads * (nope + rope)}), kv);
  const ops::View q_nope = q.columns(0, nope, {nope});      // [T,heads,nope]
  const ops::View q_pe = q.columns(nope, rope, {rope});     // [T,heads,rope]
  const ops::View kv_latent = kv.columns(0, rank, {rank});  // [T,rank]
  const ops::View k_pe = kv.columns(rank, rope, {rope});    // [T,rope], shared by all heads
  dev.run(ops::RmsNorm{
      .x = kv_latent, .weight = kv_a_layernorm.weight, .out = kv_latent, .eps = kv_a_layernorm.eps});
  for (const ops::View& rotated : {q_pe, kv.columns(rank, rope, {1, rope})})
    dev.run(ops::Rope{.x = rotated,
                      .inv_freq = rotary->view(),
                      .positions = pass.positions,
                      .mscale = rotary->mscale,
                      .pairing = pairing});
  dev.run(ops::MlaAbsorbQ{
      .q_nope = q_nope, .kv_b = kv_b_proj, .embed_q = embed_q, .q_latent = q_latent, .v = value_dim});
  const Rotated rotated{q_latent, q_pe, kv_latent, k_pe};
  if (const auto* packed = std::get_if<state::PackedLatentCache>(&state))
    attend(dev, pass, rotated, *packed, latent);
  else
    attend(dev, pass, rotated, std::get<state::LatentCache>(state), latent);
  dev.run(ops::MlaProjectOut{
      .latent = latent, .kv_b = kv_b_proj, .unembed_out = unembed_out, .out = out, .nope = nope});
  dev.run(ops::Matmul{.x = out.reshaped({tokens, heads * value_dim}), .w = o_proj, .out = y});
}

}  // namespace sluice::layers
