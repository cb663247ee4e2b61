// Multi-head latent attention in the absorbed form: queries are projected into the latent space of the cache.
#pragma once

#include "layers/device.h"
#include "layers/norm.h"
#include "layers/pass.h"
#include "layers/rotary.h"

namespace sluice::layers {

struct Mla {
  std::int64_t heads = 0;
  std::int64_t nope = 0;
  std::int64_t rope = 0;
  std::int64_t value_dim = 0;
  std::int64_t rank = 0;
  ops::Weight q_proj;              // [heads*(nope+rope), hidden], or absent if queries are compressed:
  ops::Weight q_a_proj;            // [q_rank, hidden]
  RmsNormWeights q_a_layernorm;    // [q_rank]
  ops::Weight q_b_proj;            // [heads*(nope+rope), q_rank]
  ops::Weight kv_a_proj_with_mqa;  // [rank+rope, hidden]
  RmsNormWeights kv_a_layernorm;   // [rank]
  ops::Weight kv_b_proj;           // [heads*(nope+value_dim), rank], or absent if stored in two parts:
  ops::Weight embed_q;             // [heads, rank, nope]
  ops::Weight unembed_out;         // [heads, value_dim, rank]
  ops::Weight o_proj;              // [hidden, heads*value_dim]
  ops::Pairing pairing = ops::Pairing::interleaved;
  const RotaryTable* rotary = nullptr;

  state::LayerStateShape state() const { return state::LatentCacheShape{rank, rope}; }
  void forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
               const ops::View& y) const;

 private:
  // The inputs of attention, with positions applied.
  struct Rotated {
    ops::View q_latent;   // [T,heads,rank]
    ops::View q_pe;       // [T,heads,rope]
    ops::View kv_latent;  // [T,rank]
    ops::View k_pe;       // [T,rope]
  };
  // Queries [T,heads*(nope+rope)], and what is cached of each token [T,rank+rope].
  void project(Device& dev, const ops::View& x, const ops::View& q, const ops::View& kv) const;
  double scale() const;
  // Appends the latents, then out = attention in the latent space [T,heads,rank].
  void attend(Device& dev, const Pass& pass, const Rotated& rotated, const state::LatentCache& cache,
              const ops::View& out) const;
  void attend(Device& dev, const Pass& pass, const Rotated& rotated, const state::PackedLatentCache& cache,
              const ops::View& out) const;
};

}  // namespace sluice::layers
