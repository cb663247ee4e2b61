// Qwen3.5 and Qwen3.6, mixture-of-experts and dense: three Gated DeltaNet layers for each layer of gated
// attention.
#include <nlohmann/json.hpp>

#include "models/bind.h"
#include "models/family.h"
#include "models/hybrid.h"
#include "models/sizes.h"

namespace sluice::models {

namespace qwen3_5 {
namespace {

layers::GatedDeltaNet bind_mixer(const Config& config, Binder& binder, const std::string& module) {
  layers::GatedDeltaNet net = bind_delta_net(config, binder, module);
  const std::int64_t hidden = size(config, "hidden_size");
  net.in_proj_qkv = binder.weight(module + ".in_proj_qkv", {net.channels(), hidden});
  net.in_proj_z = binder.weight(module + ".in_proj_z", {net.value_heads * net.value_dim, hidden});
  net.in_proj_b = binder.weight(module + ".in_proj_b", {net.value_heads, hidden});
  net.in_proj_a = binder.weight(module + ".in_proj_a", {net.value_heads, hidden});
  return net;
}

Model build(const Config& config, Binder& binder) {
  Model model;
  layers::Decoder& decoder = model.decoder;
  const bool moe = config.has("num_experts");
  const bool gated = config.get_or<bool>("attn_output_gate", true);
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  bind_ends(config, binder, decoder, ParameterKind::zero_centered);
  const std::vector<bool> linear = linear_layers(config);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    layers::DecoderLayer layer =
        bind_layer_norms(binder, name, decoder.hidden, eps, ParameterKind::zero_centered);
    if (linear[i])
      layer.mixer = bind_mixer(config, binder, name + ".linear_attn");
    else
      layer.mixer = bind_attention(config, binder, name, gated, ParameterKind::zero_centered);
    // The router's weights are always normalised, although the file does not state it.
    if (moe)
      layer.mlp =
          bind_moe(config, binder, name + ".mlp", true, config.has("shared_expert_intermediate_size"));
    else
      layer.mlp = bind_mlp(binder, name + ".mlp", decoder.hidden, size(config, "intermediate_size"));
    decoder.layers.push_back(layer);
  }
  const std::int64_t head_dim =
      size_or(config, "head_dim", decoder.hidden / size(config, "num_attention_heads"));
  decoder.rotary = std::make_unique<layers::RotaryTable>(layers::read_rotary(config, head_dim, 0.25));
  for (layers::DecoderLayer& layer : decoder.layers)
    if (auto* attention = std::get_if<layers::Attention>(&layer.mixer))
      attention->rotary = decoder.rotary.get();
  model.max_positions = config.get_or<std::int64_t>("max_position_embeddings", 262144);
  refuse_unsupported_qwen_fields(config);
  return model;
}

struct Experts {
  int count;
  int per_token;
  int inner;
};

Json text_config(int hidden, int layers, int heads, int kv_heads, int value_heads) {
  Json text = hybrid_sizes(hidden, layers, heads, kv_heads, value_heads);
  text.update({{"vocab_size", 248320},
               {"attn_output_gate", true},
               {"rope_parameters",
                {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}}}});
  return text;
}

Json moe(int hidden, int layers, int heads, int value_heads, const Experts& experts) {
  Json text = text_config(hidden, layers, heads, 2, value_heads);
  text.update({{"model_type", "qwen3_5_moe_text"},
               {"num_experts", experts.count},
               {"num_experts_per_tok", experts.per_token},
               {"moe_intermediate_size", experts.inner},
               {"shared_expert_intermediate_size", experts.inner}});
  return {{"model_type", "qwen3_5_moe"}, {"text_config", text}};
}

Json dense_27b() {
  Json text = text_config(5120, 64, 24, 4, 48);
  text["model_type"] = "qwen3_5_text";
  text["intermediate_size"] = 17408;
  return {{"model_type", "qwen3_5"}, {"text_config", text}};
}

constexpr std::string_view kInputs[] = {"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"};
constexpr std::string_view kFine[] = {"mlp.gate", "shared_expert_gate"};
constexpr std::string_view kTypes[] = {"qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_text"};
constexpr Geometry kGeometries[] = {
    {"qwen3.6-35b-a3b",
     [] {
       return moe(2048, 40, 16, 32, {256, 8, 512});
     }},
    {"qwen3.5-122b-a10b",
     [] {
       return moe(3072, 48, 32, 64, {256, 8, 1024});
     }},
    {"qwen3.5-397b-a17b",
     [] {
       return moe(4096, 60, 32, 64, {512, 10, 1024});
     }},
    {"qwen3.6-27b", dense_27b},
};

}  // namespace
}  // namespace qwen3_5

extern const Family kQwen35;
const Family kQwen35 = {
    .model_types = qwen3_5::kTypes,
    .build = qwen3_5::build,
    .geometries = qwen3_5::kGeometries,
    .conversion = {.wrapped = true,
                   .delta_net_inputs = qwen3_5::kInputs,
                   .shared_expert_gate = true,
                   .eight_bit_modules = qwen3_5::kFine,
                   .keeps_dtype = "A_log"},
};

}  // namespace sluice::models
