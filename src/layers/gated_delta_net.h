// Gated DeltaNet: a short convolution, the gated delta rule, a gated norm.
#pragma once

#include "layers/device.h"
#include "layers/norm.h"
#include "layers/pass.h"

namespace sluice::layers {

struct GatedDeltaNet {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv_width = 0;
  ops::Weight in_proj_qkv;  // [2*key_heads*key_dim + value_heads*value_dim, hidden]: q, k, v
  ops::Weight in_proj_z;    // [value_heads*value_dim, hidden]
  ops::Weight in_proj_b;    // [value_heads, hidden]
  ops::Weight in_proj_a;    // [value_heads, hidden]
  ops::Weight in_proj;      // the four above as one matrix, if they were joined; else absent
  ops::ConstView conv1d;    // F32 [channels, conv_width]
  ops::ConstView A_log;     // F32 [value_heads]
  ops::ConstView dt_bias;   // F32 [value_heads]
  RmsNormWeights norm;      // [value_dim], per head
  ops::Weight out_proj;     // [hidden, value_heads*value_dim]

  std::int64_t channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  state::LayerStateShape state() const {
    return state::DeltaStateShape{value_heads, value_dim, key_dim, channels(), conv_width};
  }
  void forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
               const ops::View& y) const;

 private:
  struct Projections {
    ops::View qkv;  // [T,channels]
    ops::View z;    // [T,value_heads,value_dim]
    ops::View b;    // [T,value_heads]
    ops::View a;    // [T,value_heads]
  };
  Projections project(Device& dev, const ops::View& x) const;
  void mix_step(Device& dev, const Pass& pass, const Projections& in, const state::DeltaState& state,
                const ops::View& out) const;
  void mix_prompt(Device& dev, const Pass& pass, const Projections& in, const state::DeltaState& state,
                  const ops::View& out) const;
};

}  // namespace sluice::layers
