// Grouped-query attention with normalised queries and keys, partial rotary embedding and an optional output
// gate.
#pragma once

#include "layers/device.h"
#include "layers/norm.h"
#include "layers/pass.h"
#include "layers/rotary.h"

namespace sluice::layers {

struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool gated = false;     // q_proj holds per head the query, then the gate
  ops::Weight q_proj;     // [heads*head_dim*(1 or 2), hidden]
  ops::Weight k_proj;     // [kv_heads*head_dim, hidden]
  ops::Weight v_proj;     // [kv_heads*head_dim, hidden]
  ops::Weight qkv_proj;   // the three above as one matrix, if they were joined; else absent
  ops::Weight o_proj;     // [hidden, heads*head_dim]
  RmsNormWeights q_norm;  // [head_dim]
  RmsNormWeights k_norm;  // [head_dim]
  const RotaryTable* rotary = nullptr;

  state::LayerStateShape state() const { return state::KvCacheShape{kv_heads, head_dim, head_dim}; }
  // y [T,hidden] from the normalised x [T,hidden].
  void forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
               const ops::View& y) const;

 private:
  struct Projections {
    ops::View q;  // [T,heads,head_dim*(1 or 2)]
    ops::View k;  // [T,kv_heads,head_dim]
    ops::View v;  // [T,kv_heads,head_dim]
  };
  Projections project(Device& dev, const ops::View& x) const;
  // Normalises and rotates queries and keys in place, and appends keys and values to the cache.
  void append(Device& dev, const Pass& pass, const Projections& to, const state::KvCache& cache) const;
  void append(Device& dev, const Pass& pass, const Projections& to, const state::PackedKvCache& cache) const;
  // out = attention of the rotated queries [T,heads,head_dim].
  void attend(Device& dev, const Pass& pass, const Projections& turned, const state::KvCache& cache,
              const ops::View& out) const;
  void attend(Device& dev, const Pass& pass, const Projections& turned, const state::PackedKvCache& cache,
              const ops::View& out) const;
  double scale() const;
};

}  // namespace sluice::layers
