// Qwen3-Next: like Qwen3.5, with the input projections of Gated DeltaNet fused and interleaved by key head.
#include <nlohmann/json.hpp>

#include "models/bind.h"
#include "models/family.h"
#include "models/hybrid.h"
#include "models/sizes.h"

namespace sluice::models {

namespace qwen3_next {
namespace {

// The rows of in_proj_qkvz in the order q, k, v (of all heads), and those of z. The file stores, per key
// head, q | k | v of its value heads | z of its value heads.
struct RowOrder {
  std::vector<std::int64_t> qkv;
  std::vector<std::int64_t> z;
  std::vector<std::int64_t> b;
  std::vector<std::int64_t> a;
};

RowOrder row_order(const layers::GatedDeltaNet& net) {
  const std::int64_t ratio = net.value_heads / net.key_heads;
  const std::int64_t values = ratio * net.value_dim;
  const std::int64_t block = 2 * net.key_dim + 2 * values;
  RowOrder order;
  const auto take = [&](std::vector<std::int64_t>& rows, std::int64_t offset, std::int64_t count,
                        std::int64_t step) {
    for (std::int64_t head = 0; head < net.key_heads; ++head)
      for (std::int64_t i = 0; i < count; ++i) rows.push_back(head * step + offset + i);
  };
  take(order.qkv, 0, net.key_dim, block);
  take(order.qkv, net.key_dim, net.key_dim, block);
  take(order.qkv, 2 * net.key_dim, values, block);
  take(order.z, 2 * net.key_dim + values, values, block);
  take(order.b, 0, ratio, 2 * ratio);
  take(order.a, ratio, ratio, 2 * ratio);
  return order;
}

layers::GatedDeltaNet bind_fused_mixer(const Config& config, Binder& binder, const std::string& module) {
  layers::GatedDeltaNet net = bind_delta_net(config, binder, module);
  const std::int64_t hidden = size(config, "hidden_size");
  const std::int64_t values = net.value_heads * net.value_dim;
  const RowOrder order = row_order(net);
  const ops::Shape fused{net.channels() + values, hidden};
  const ops::Shape gates{2 * net.value_heads, hidden};
  net.in_proj_qkv = binder.reordered(module + ".in_proj_qkvz", fused, order.qkv);
  net.in_proj_z = binder.reordered(module + ".in_proj_qkvz", fused, order.z);
  net.in_proj_b = binder.reordered(module + ".in_proj_ba", gates, order.b);
  net.in_proj_a = binder.reordered(module + ".in_proj_ba", gates, order.a);
  return net;
}

Model build(const Config& config, Binder& binder) {
  Model model;
  layers::Decoder& decoder = model.decoder;
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  const bool normalize = config.get_or<bool>("norm_topk_prob", true);
  bind_ends(config, binder, decoder, ParameterKind::zero_centered);
  const std::vector<bool> linear = linear_layers(config);
  decoder.rotary = std::make_unique<layers::RotaryTable>(
      layers::read_rotary(config, size_or(config, "head_dim", 256), 0.25));
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    layers::DecoderLayer layer =
        bind_layer_norms(binder, name, decoder.hidden, eps, ParameterKind::zero_centered);
    if (linear[i]) {
      layer.mixer = bind_fused_mixer(config, binder, name + ".linear_attn");
    } else {
      layers::Attention attention = bind_attention(config, binder, name, true, ParameterKind::zero_centered);
      attention.rotary = decoder.rotary.get();
      layer.mixer = attention;
    }
    if (is_sparse(config, static_cast<std::int64_t>(i)))
      layer.mlp = bind_moe(config, binder, name + ".mlp", normalize, true);
    else
      layer.mlp = bind_mlp(binder, name + ".mlp", decoder.hidden, size(config, "intermediate_size"));
    decoder.layers.push_back(layer);
  }
  model.max_positions = config.get_or<std::int64_t>("max_position_embeddings", 262144);
  refuse_unsupported_qwen_fields(config);
  return model;
}

Json next_80b() {
  Json config = hybrid_sizes(2048, 48, 16, 2, 32);
  config.update({{"model_type", "qwen3_next"},
                 {"vocab_size", 151936},
                 {"num_experts", 512},
                 {"num_experts_per_tok", 10},
                 {"moe_intermediate_size", 512},
                 {"shared_expert_intermediate_size", 512},
                 {"intermediate_size", 5120},
                 {"decoder_sparse_step", 1},
                 {"norm_topk_prob", true},
                 {"rope_theta", 1e7},
                 {"partial_rotary_factor", 0.25}});
  return config;
}

constexpr std::string_view kInputs[] = {"in_proj_qkvz", "in_proj_ba"};
constexpr std::string_view kFine[] = {"mlp.gate", "shared_expert_gate"};
constexpr std::string_view kTypes[] = {"qwen3_next"};
constexpr Geometry kGeometries[] = {
    {"qwen3-next-80b-a3b", next_80b},
};

}  // namespace
}  // namespace qwen3_next

extern const Family kQwen3Next;
const Family kQwen3Next = {
    .model_types = qwen3_next::kTypes,
    .build = qwen3_next::build,
    .geometries = qwen3_next::kGeometries,
    .conversion = {.delta_net_inputs = qwen3_next::kInputs,
                   .shared_expert_gate = true,
                   .eight_bit_modules = qwen3_next::kFine},
};

}  // namespace sluice::models
