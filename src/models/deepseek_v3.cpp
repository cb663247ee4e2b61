// DeepSeek-V3, R1 and Cogito-V2: latent attention, sigmoid router with groups, the first layers dense.
#include <nlohmann/json.hpp>

#include "models/bind.h"
#include "models/family.h"
#include "models/sizes.h"

namespace sluice::models {

namespace deepseek_v3 {
namespace {

constexpr double kLatentNormEps = 1e-6;  // fixed in the architecture, independent of rms_norm_eps

layers::Mla bind_mla(const Config& config, Binder& binder, const std::string& module) {
  const std::int64_t hidden = size(config, "hidden_size");
  layers::Mla mla;
  mla.heads = size(config, "num_attention_heads");
  mla.nope = size(config, "qk_nope_head_dim");
  mla.rope = size(config, "qk_rope_head_dim");
  mla.value_dim = size(config, "v_head_dim");
  mla.rank = size(config, "kv_lora_rank");
  const std::int64_t width = mla.heads * (mla.nope + mla.rope);
  if (config.has("q_lora_rank")) {
    const std::int64_t q_rank = size(config, "q_lora_rank");
    mla.q_a_proj = binder.weight(module + ".q_a_proj", {q_rank, hidden});
    mla.q_a_layernorm =
        bind_norm(binder, module + ".q_a_layernorm", q_rank, kLatentNormEps, ParameterKind::plain);
    mla.q_b_proj = binder.weight(module + ".q_b_proj", {width, q_rank});
  } else {
    mla.q_proj = binder.weight(module + ".q_proj", {width, hidden});
  }
  mla.kv_a_proj_with_mqa = binder.weight(module + ".kv_a_proj_with_mqa", {mla.rank + mla.rope, hidden});
  mla.kv_a_layernorm =
      bind_norm(binder, module + ".kv_a_layernorm", mla.rank, kLatentNormEps, ParameterKind::plain);
  if (binder.has(module + ".embed_q")) {
    mla.embed_q = binder.weight(module + ".embed_q", {mla.heads, mla.rank, mla.nope});
    mla.unembed_out = binder.weight(module + ".unembed_out", {mla.heads, mla.value_dim, mla.rank});
  } else {
    mla.kv_b_proj = binder.weight(module + ".kv_b_proj", {mla.heads * (mla.nope + mla.value_dim), mla.rank});
  }
  mla.o_proj = binder.weight(module + ".o_proj", {hidden, mla.heads * mla.value_dim});
  mla.pairing = config.get_or<bool>("rope_interleave", true) ? ops::Pairing::interleaved : ops::Pairing::half;
  return mla;
}

layers::Moe bind_experts(const Config& config, Binder& binder, const std::string& module) {
  const std::int64_t hidden = size(config, "hidden_size");
  const std::int64_t experts = size(config, "n_routed_experts");
  const std::int64_t inner = size(config, "moe_intermediate_size");
  layers::Moe moe;
  moe.router.gate = binder.weight(module + ".gate", {experts, hidden});
  moe.router.selection_bias =
      binder.parameter(module + ".gate.e_score_correction_bias", {experts}, ParameterKind::plain);
  moe.router.top_k = size(config, "num_experts_per_tok");
  moe.router.groups = size_or(config, "n_group", 1);
  moe.router.top_groups = size_or(config, "topk_group", 1);
  moe.router.normalize = config.get_or<bool>("norm_topk_prob", true);
  moe.router.scale = config.get_or<double>("routed_scaling_factor", 1);
  if (experts % moe.router.groups != 0 || moe.router.top_groups > moe.router.groups ||
      moe.router.top_k > experts / moe.router.groups * moe.router.top_groups)
    fail(ErrorKind::checkpoint,
         "{}: {} experts per token from {} of {} groups of {} experts cannot be chosen", config.where(),
         moe.router.top_k, moe.router.top_groups, moe.router.groups, experts);
  moe.gate_proj = binder.experts(module, "gate_proj", {experts, inner, hidden});
  moe.up_proj = binder.experts(module, "up_proj", {experts, inner, hidden});
  moe.down_proj = binder.experts(module, "down_proj", {experts, hidden, inner});
  const std::int64_t shared = count_or(config, "n_shared_experts", 0);
  if (shared > 0) moe.shared_expert = bind_mlp(binder, module + ".shared_experts", hidden, shared * inner);
  return moe;
}

// Rejects fields that would change the result but were not read once all weights are bound.
void refuse_unsupported_fields(const Config& config) {
  // Without effect, checked below, or sizes of experts when every layer is dense.
  config.refuse_unread({"hidden_act",
                        "n_routed_experts",
                        "n_shared_experts",
                        "num_experts_per_tok",
                        "moe_intermediate_size",
                        "n_group",
                        "topk_group",
                        "norm_topk_prob",
                        "routed_scaling_factor",
                        "num_key_value_heads",
                        "head_dim",
                        "qk_head_dim",
                        "rope_theta",
                        "rope_scaling",
                        "aux_loss_alpha",
                        "seq_aux",
                        "attention_bias",
                        "attention_dropout",
                        "initializer_range",
                        "use_cache",
                        "pretraining_tp",
                        "tie_word_embeddings",
                        "pad_token_id",
                        "partial_rotary_factor",
                        "intermediate_size",
                        "num_nextn_predict_layers",
                        "output_router_logits",
                        "router_aux_loss_coef",
                        "max_position_embeddings"});
  expect<std::string>(config, "hidden_act", "silu");
  expect<bool>(config, "attention_bias", false);
}

Model build(const Config& config, Binder& binder) {
  expect<std::string>(config, "scoring_func", "sigmoid");
  expect<std::string>(config, "topk_method", "noaux_tc");
  expect<std::int64_t>(config, "moe_layer_freq", 1);
  expect<std::int64_t>(config, "ep_size", 1);
  Model model;
  layers::Decoder& decoder = model.decoder;
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  bind_ends(config, binder, decoder, ParameterKind::plain);
  decoder.rotary =
      std::make_unique<layers::RotaryTable>(layers::read_rotary(config, size(config, "qk_rope_head_dim"), 1));
  const std::int64_t count = size(config, "num_hidden_layers");
  const auto dense = config.get_or<std::int64_t>("first_k_dense_replace", 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string name = "model.layers." + std::to_string(i);
    layers::DecoderLayer layer = bind_layer_norms(binder, name, decoder.hidden, eps, ParameterKind::plain);
    layers::Mla mla = bind_mla(config, binder, name + ".self_attn");
    mla.rotary = decoder.rotary.get();
    layer.mixer = mla;
    if (i < dense)
      layer.mlp = bind_mlp(binder, name + ".mlp", decoder.hidden, size(config, "intermediate_size"));
    else
      layer.mlp = bind_experts(config, binder, name + ".mlp");
    decoder.layers.push_back(layer);
  }
  model.max_positions = config.get_or<std::int64_t>("max_position_embeddings", 163840);
  // Draft layers are stored after the last layer.
  constexpr std::int64_t kMostDraftLayers = 64;
  const std::int64_t drafts = count_or(config, "num_nextn_predict_layers", 1, kMostDraftLayers);
  for (std::int64_t i = 0; i < drafts; ++i)
    model.spare_tensors.push_back("model.layers." + std::to_string(count + i) + ".");
  refuse_unsupported_fields(config);
  return model;
}

Json v3() {
  return {{"model_type", "deepseek_v3"},
          {"hidden_size", 7168},
          {"num_hidden_layers", 61},
          {"num_attention_heads", 128},
          {"num_key_value_heads", 128},
          {"q_lora_rank", 1536},
          {"kv_lora_rank", 512},
          {"qk_nope_head_dim", 128},
          {"qk_rope_head_dim", 64},
          {"v_head_dim", 128},
          {"intermediate_size", 18432},
          {"moe_intermediate_size", 2048},
          {"n_routed_experts", 256},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 8},
          {"n_group", 8},
          {"topk_group", 4},
          {"norm_topk_prob", true},
          {"routed_scaling_factor", 2.5},
          {"first_k_dense_replace", 3},
          {"scoring_func", "sigmoid"},
          {"topk_method", "noaux_tc"},
          {"vocab_size", 129280},
          {"tie_word_embeddings", false},
          {"max_position_embeddings", 163840},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000},
          {"hidden_act", "silu"},
          {"rope_scaling",
           {{"type", "yarn"},
            {"factor", 40},
            {"original_max_position_embeddings", 4096},
            {"beta_fast", 32},
            {"beta_slow", 1},
            {"mscale", 1.0},
            {"mscale_all_dim", 1.0}}}};
}

constexpr std::string_view kTypes[] = {"deepseek_v3"};
constexpr Geometry kGeometries[] = {
    {"deepseek-v3", v3},
};

}  // namespace
}  // namespace deepseek_v3

extern const Family kDeepseekV3;
const Family kDeepseekV3 = {
    .model_types = deepseek_v3::kTypes,
    .build = deepseek_v3::build,
    .geometries = deepseek_v3::kGeometries,
    .conversion = {.latent_attention = true,
                   .dense_router = true,
                   .draft_layers = true,
                   .may_be_tied = false,
                   .experts_key = "n_routed_experts",
                   .keeps_dtype = "e_score_correction_bias"},
};

}  // namespace sluice::models
