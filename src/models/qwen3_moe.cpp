// Qwen3-MoE: attention without a gate, plain norms, no shared expert.
#include "models/model.h"
#include "models/qwen.h"
#include "models/sizes.h"

namespace sluice::models {

Model build_qwen3_moe(const Config& config, Binder& binder) {
  Model model;
  layers::Decoder& decoder = model.decoder;
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  const bool normalize = config.get_or<bool>("norm_topk_prob", false);
  bind_ends(config, binder, decoder, ParameterKind::plain);
  const std::int64_t head_dim =
      size_or(config, "head_dim", decoder.hidden / size(config, "num_attention_heads"));
  decoder.rotary = std::make_unique<layers::RotaryTable>(layers::read_rotary(config, head_dim, 1));
  for (std::int64_t i = 0; i < size(config, "num_hidden_layers"); ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    layers::DecoderLayer layer;
    layer.input_layernorm =
        bind_norm(binder, name + ".input_layernorm", decoder.hidden, eps, ParameterKind::plain);
    layer.post_attention_layernorm =
        bind_norm(binder, name + ".post_attention_layernorm", decoder.hidden, eps, ParameterKind::plain);
    layers::Attention attention = bind_attention(config, binder, name, false, ParameterKind::plain);
    attention.rotary = decoder.rotary.get();
    layer.mixer = attention;
    if (is_sparse(config, i))
      layer.mlp = bind_moe(config, binder, name + ".mlp", normalize, false);
    else
      layer.mlp = bind_mlp(binder, name + ".mlp", decoder.hidden, size(config, "intermediate_size"));
    decoder.layers.push_back(layer);
  }
  model.max_positions = config.get_or<std::int64_t>("max_position_embeddings", 40960);
  refuse_unsupported_fields(config);
  return model;
}

}  // namespace sluice::models
