#include "layers/gated_delta_net.h"

#include <cmath>

namespace sluice::layers {

namespace {

constexpr double kQkEps = 1e-6;

}  // namespace

GatedDeltaNet::Projections GatedDeltaNet::project(Device& dev, const ops::View& x) const {
  const std::int64_t tokens = x.dim(0);
  const std::int64_t values = value_heads * value_dim;
  if (in_proj.present()) {
    const ops::View all = dev.take({tokens, in_proj.shape()[0]});
    dev.run(ops::Matmul{.x = x, .w = in_proj, .out = all});
    return {all.columns(0, channels(), {channels()}),
            all.columns(channels(), values, {value_heads, value_dim}),
            all.columns(channels() + values, value_heads, {value_heads}),
            all.columns(channels() + values + value_heads, value_heads, {value_heads})};
  }
  const Projections to{dev.take({tokens, channels()}), dev.take({tokens, value_heads, value_dim}),
                       dev.take({tokens, value_heads}, ops::DType::f32),
                       dev.take({tokens, value_heads}, ops::DType::f32)};
  dev.run_together(ops::Matmul{.x = x, .w = in_proj_qkv, .out = to.qkv},
                   ops::Matmul{.x = x, .w = in_proj_z, .out = to.z.reshaped({tokens, values})},
                   ops::Matmul{.x = x, .w = in_proj_b, .out = to.b},
                   ops::Matmul{.x = x, .w = in_proj_a, .out = to.a});
  return to;
}

// Generated tokens, one or more per sequence.
void GatedDeltaNet::mix_step(Device& dev, const Pass& pass, const Projections& in,
                             const state::DeltaState& state, const ops::View& out) const {
  dev.run(ops::DeltaStep{.qkv = in.qkv,
                         .z = in.z,
                         .a = in.a,
                         .b = in.b,
                         .conv_weight = conv1d,
                         .A_log = A_log,
                         .dt_bias = dt_bias,
                         .norm_weight = norm.weight,
                         .conv_state = pass.state(state.conv),
                         .state = pass.state(state.delta),
                         .out = out,
                         .seq_starts = pass.seq_starts,
                         .slots = pass.slots,
                         .qk_eps = kQkEps,
                         .eps = norm.eps});
}

void GatedDeltaNet::mix_prompt(Device& dev, const Pass& pass, const Projections& in,
                               const state::DeltaState& state, const ops::View& out) const {
  const Scope scope = dev.scope();
  const std::int64_t keys = key_heads * key_dim;
  const ops::View convolved = dev.take({pass.tokens, channels()});
  const ops::View g = dev.take({pass.tokens, value_heads}, ops::DType::f32);
  const ops::View beta = dev.take({pass.tokens, value_heads}, ops::DType::f32);
  dev.run(ops::CausalConv1d{.x = in.qkv,
                            .weight = conv1d,
                            .state = pass.state(state.conv),
                            .out = convolved,
                            .seq_starts = pass.seq_starts,
                            .slots = pass.slots,
                            .save_at = pass.save_at,
                            .saved = pass.saved(state.conv)});
  const ops::View q = convolved.columns(0, keys, {key_heads, key_dim});
  const ops::View k = convolved.columns(keys, keys, {key_heads, key_dim});
  const ops::View v = convolved.columns(2 * keys, value_heads * value_dim, {value_heads, value_dim});
  dev.run(ops::QkL2Norm{.q = q, .k = k, .eps = kQkEps, .q_scale = 1 / std::sqrt(key_dim), .k_scale = 1});
  dev.run(ops::DeltaGates{.a = in.a, .b = in.b, .A_log = A_log, .dt_bias = dt_bias, .g = g, .beta = beta});
  dev.run(ops::DeltaRule{.q = q,
                         .k = k,
                         .v = v,
                         .g = g,
                         .beta = beta,
                         .state = pass.state(state.delta),
                         .out = out,
                         .seq_starts = pass.seq_starts,
                         .slots = pass.slots,
                         .save_at = pass.save_at,
                         .saved = pass.saved(state.delta)});
  dev.run(ops::GatedRmsNorm{.x = out, .z = in.z, .weight = norm.weight, .out = out, .eps = norm.eps});
}

void GatedDeltaNet::forward(Device& dev, const Pass& pass, const ops::View& x, const state::LayerState& state,
                            const ops::View& y) const {
  const Scope scope = dev.scope();
  const Projections in = project(dev, x);
  const ops::View out = dev.take({pass.tokens, value_heads, value_dim});
  const auto& own = std::get<state::DeltaState>(state);
  if (pass.generated())
    mix_step(dev, pass, in, own, out);
  else
    mix_prompt(dev, pass, in, own, out);
  dev.run(ops::Matmul{.x = out.reshaped({pass.tokens, value_heads * value_dim}), .w = out_proj, .out = y});
}

}  // namespace sluice::layers
