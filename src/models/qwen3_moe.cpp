// Qwen3-MoE: attention without a gate, plain norms, no shared expert.
#include <nlohmann/json.hpp>

#include "models/bind.h"
#include "models/family.h"
#include "models/sizes.h"

namespace sluice::models {

namespace qwen3_moe {
namespace {

Model build(const Config& config, Binder& binder) {
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
    layers::DecoderLayer layer = bind_layer_norms(binder, name, decoder.hidden, eps, ParameterKind::plain);
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
  refuse_unsupported_qwen_fields(config);
  return model;
}

Json moe_30b() {
  return {{"model_type", "qwen3_moe"},
          {"hidden_size", 2048},
          {"num_hidden_layers", 48},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 4},
          {"head_dim", 128},
          {"num_experts", 128},
          {"num_experts_per_tok", 8},
          {"moe_intermediate_size", 768},
          {"intermediate_size", 6144},
          {"decoder_sparse_step", 1},
          {"norm_topk_prob", true},
          {"rope_theta", 1e6},
          {"vocab_size", 151936},
          {"tie_word_embeddings", false},
          {"max_position_embeddings", 40960},
          {"rms_norm_eps", 1e-6},
          {"hidden_act", "silu"}};
}

constexpr std::string_view kFine[] = {"mlp.gate"};
constexpr std::string_view kTypes[] = {"qwen3_moe"};
constexpr Geometry kGeometries[] = {
    {"qwen3-30b-a3b", moe_30b},
};

}  // namespace
}  // namespace qwen3_moe

extern const Family kQwen3Moe;
const Family kQwen3Moe = {
    .model_types = qwen3_moe::kTypes,
    .build = qwen3_moe::build,
    .geometries = qwen3_moe::kGeometries,
    .conversion = {.eight_bit_modules = qwen3_moe::kFine},
};

}  // namespace sluice::models
