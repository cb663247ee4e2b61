// Qwen3.5 and Qwen3.6, mixture-of-experts and dense: three Gated DeltaNet layers to one of gated attention.
#include "models/model.h"
#include "models/qwen.h"
#include "models/sizes.h"

namespace sluice::models {

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

}  // namespace

Model build_qwen3_5(const Config& config, Binder& binder) {
  Model model;
  layers::Decoder& decoder = model.decoder;
  const bool moe = config.has("num_experts");
  const bool gated = config.get_or<bool>("attn_output_gate", true);
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  bind_ends(config, binder, decoder, ParameterKind::zero_centered);
  const std::vector<bool> linear = linear_layers(config);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    layers::DecoderLayer layer;
    layer.input_layernorm =
        bind_norm(binder, name + ".input_layernorm", decoder.hidden, eps, ParameterKind::zero_centered);
    layer.post_attention_layernorm = bind_norm(binder, name + ".post_attention_layernorm", decoder.hidden,
                                               eps, ParameterKind::zero_centered);
    if (linear[i])
      layer.mixer = bind_mixer(config, binder, name + ".linear_attn");
    else
      layer.mixer = bind_attention(config, binder, name, gated, ParameterKind::zero_centered);
    // The router's weights are always normalised; the file does not say so.
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
  refuse_unsupported_fields(config);
  return model;
}

}  // namespace sluice::models
