#include "layers/gated_delta_net.h"

#include <cmath>

namespace sluice::layers {

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
  dev.run(ops::Matmul{.x = x, .w = in_proj_qkv, .out = to.qkv});
  dev.run(ops::Matmul{.x = x, .w = in_proj_z, .out = to.z.reshaped({tokens, values})});
  dev.run(ops::Matmul{.x = x, .w = in_proj_b, .out = to.b});
  dev.run(ops::Matmul{.x = x, .w = in_proj_a, .out = to.a});
  return to;
}

void GatedDeltaNet::forward(Device& dev, const Batch& batch, const ops::View& x,
                            const state::LayerState& state, const ops::View& y) const {
  const Scope scope = dev.scope();
  const std::int64_t tokens = batch.tokens;
  const std::int64_t keys = key_heads * key_dim;
  const std::int64_t values = value_heads * value_dim;
  const auto [qkv, z, b, a] = project(dev, x);
  const ops::View convolved = dev.take({tokens, channels()});
  const ops::View g = dev.take({tokens, value_heads}, ops::DType::f32);
  const ops::View beta = dev.take({tokens, value_heads}, ops::DType::f32);
  const ops::View out = dev.take({tokens, value_heads, value_dim});
  dev.run(ops::CausalConv1d{.x = qkv,
                            .weight = conv1d,
                            .state = batch.of(state.second),
                            .out = convolved,
                            .seq_starts = batch.seq_starts,
                            .slots = batch.slots});
  const ops::View q = convolved.columns(0, keys, {key_heads, key_dim});
  const ops::View k = convolved.columns(keys, keys, {key_heads, key_dim});
  const ops::View v = convolved.columns(2 * keys, values, {value_heads, value_dim});
  dev.run(ops::QkL2Norm{
      .q = q, .k = k, .eps = 1e-6, .q_scale = 1 / std::sqrt(static_cast<double>(key_dim)), .k_scale = 1});
  dev.run(ops::DeltaGates{.a = a, .b = b, .A_log = A_log, .dt_bias = dt_bias, .g = g, .beta = beta});
  dev.run(ops::DeltaRule{.q = q,
                         .k = k,
                         .v = v,
                         .g = g,
                         .beta = beta,
                         .state = batch.of(state.first),
                         .out = out,
                         .seq_starts = batch.seq_starts,
                         .slots = batch.slots});
  dev.run(ops::GatedRmsNorm{.x = out, .z = z, .weight = norm.weight, .out = out, .eps = norm.eps});
  dev.run(ops::Matmul{.x = out.reshaped({tokens, values}), .w = out_proj, .out = y});
}

}  // namespace sluice::layers
