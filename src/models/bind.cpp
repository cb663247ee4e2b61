#include "models/bind.h"

#include <algorithm>

#include "models/sizes.h"

namespace sluice::models {

namespace {

// transformers uses either name for Qwen3-MoE's number of experts.
std::string_view experts_key(const Config& config) {
  return config.has("num_experts") ? "num_experts" : "num_local_experts";
}

}  // namespace

layers::RmsNormWeights bind_norm(Binder& binder, const std::string& module, std::int64_t width, double eps,
                                 ParameterKind kind) {
  return {binder.parameter(module + ".weight", {width}, kind), eps};
}

layers::DecoderLayer bind_layer_norms(Binder& binder, const std::string& layer, std::int64_t hidden,
                                      double eps, ParameterKind kind) {
  layers::DecoderLayer bound;
  bound.input_layernorm = bind_norm(binder, layer + ".input_layernorm", hidden, eps, kind);
  bound.post_attention_layernorm = bind_norm(binder, layer + ".post_attention_layernorm", hidden, eps, kind);
  return bound;
}

layers::Attention bind_attention(const Config& config, Binder& binder, const std::string& layer, bool gated,
                                 ParameterKind norms) {
  const std::string module = layer + ".self_attn.";
  const std::int64_t hidden = size(config, "hidden_size");
  const auto eps = config.get_or<double>("rms_norm_eps", 1e-6);
  layers::Attention attention;
  attention.heads = size(config, "num_attention_heads");
  attention.kv_heads = size_or(config, "num_key_value_heads", attention.heads);
  attention.head_dim = size_or(config, "head_dim", hidden / attention.heads);
  attention.gated = gated;
  if (attention.heads % attention.kv_heads != 0)
    fail(ErrorKind::checkpoint, "{}: {} attention heads cannot share {} key-value heads evenly",
         config.where(), attention.heads, attention.kv_heads);
  const std::int64_t width = attention.heads * attention.head_dim;
  const std::int64_t kv_width = attention.kv_heads * attention.head_dim;
  attention.q_proj = binder.weight(module + "q_proj", {width * (gated ? 2 : 1), hidden});
  attention.k_proj = binder.weight(module + "k_proj", {kv_width, hidden});
  attention.v_proj = binder.weight(module + "v_proj", {kv_width, hidden});
  attention.o_proj = binder.weight(module + "o_proj", {hidden, width});
  attention.q_norm = bind_norm(binder, module + "q_norm", attention.head_dim, eps, norms);
  attention.k_norm = bind_norm(binder, module + "k_norm", attention.head_dim, eps, norms);
  return attention;
}

layers::Mlp bind_mlp(Binder& binder, const std::string& module, std::int64_t hidden,
                     std::int64_t intermediate) {
  return {binder.weight(module + ".gate_proj", {intermediate, hidden}),
          binder.weight(module + ".up_proj", {intermediate, hidden}),
          binder.weight(module + ".down_proj", {hidden, intermediate})};
}

layers::Moe bind_moe(const Config& config, Binder& binder, const std::string& module, bool normalize,
                     bool shared_expert) {
  const std::int64_t hidden = size(config, "hidden_size");
  const std::int64_t experts = size(config, experts_key(config));
  const std::int64_t inner = size(config, "moe_intermediate_size");
  layers::Moe moe;
  moe.router.gate = binder.weight(module + ".gate", {experts, hidden});
  moe.router.top_k = size(config, "num_experts_per_tok");
  moe.router.normalize = normalize;
  if (moe.router.top_k > experts)
    fail(ErrorKind::checkpoint, "{}: 'num_experts_per_tok' is {}, there are {} experts", config.where(),
         moe.router.top_k, experts);
  moe.gate_proj = binder.experts(module, "gate_proj", {experts, inner, hidden});
  moe.up_proj = binder.experts(module, "up_proj", {experts, inner, hidden});
  moe.down_proj = binder.experts(module, "down_proj", {experts, hidden, inner});
  if (shared_expert) {
    moe.shared_expert =
        bind_mlp(binder, module + ".shared_expert", hidden, size(config, "shared_expert_intermediate_size"));
    moe.shared_expert_gate = binder.weight(module + ".shared_expert_gate", {1, hidden});
  }
  return moe;
}

void bind_ends(const Config& config, Binder& binder, layers::Decoder& decoder, ParameterKind norms) {
  decoder.hidden = size(config, "hidden_size");
  decoder.vocab = size(config, "vocab_size");
  decoder.embed_tokens = binder.weight("model.embed_tokens", {decoder.vocab, decoder.hidden});
  decoder.norm =
      bind_norm(binder, "model.norm", decoder.hidden, config.get_or<double>("rms_norm_eps", 1e-6), norms);
  // A head in the file is used even if the config says that it is tied, as in transformers.
  decoder.tied = config.get_or<bool>("tie_word_embeddings", false) && !binder.has("lm_head");
  decoder.lm_head =
      decoder.tied ? decoder.embed_tokens : binder.weight("lm_head", {decoder.vocab, decoder.hidden});
}

bool is_sparse(const Config& config, std::int64_t layer) {
  const auto dense = config.get_or<std::vector<std::int64_t>>("mlp_only_layers", {});
  if (std::find(dense.begin(), dense.end(), layer) != dense.end()) return false;
  const bool has_experts = config.get_or<std::int64_t>(experts_key(config), 0) > 0;
  return has_experts && (layer + 1) % size_or(config, "decoder_sparse_step", 1) == 0;
}

void refuse_unsupported_qwen_fields(const Config& config) {
  expect<std::string>(config, "hidden_act", "silu");
  expect<bool>(config, "attention_bias", false);
  expect<bool>(config, "use_sliding_window", false);
  const auto gate = config.get_or<std::string>("output_gate_type", "swish");
  if (gate != "swish" && gate != "silu")
    fail(ErrorKind::unsupported, "{}: 'output_gate_type' is '{}', only swish and silu are supported",
         config.where(), gate);
  // Not read so far: without effect on a forward pass over text, or sizes of layers that this model does not
  // have.
  config.refuse_unread({"attention_dropout",
                        "initializer_range",
                        "use_cache",
                        "max_window_layers",
                        "sliding_window",
                        "router_aux_loss_coef",
                        "output_router_logits",
                        "mtp_num_hidden_layers",
                        "mtp_use_dedicated_embeddings",
                        "mamba_ssm_dtype",
                        "intermediate_size",
                        "pad_token_id",
                        "image_token_id",
                        "video_token_id",
                        "vision_start_token_id",
                        "vision_end_token_id",
                        "vision_config",
                        "decoder_sparse_step",
                        "mlp_only_layers",
                        "norm_topk_prob",
                        "head_dim",
                        "rope_parameters.mrope_section",
                        "rope_parameters.mrope_interleaved",
                        "rope_scaling",
                        "rope_theta",
                        "partial_rotary_factor",
                        "language_model_only",
                        "tie_word_embeddings",
                        "full_attention_interval",
                        "attn_output_gate",
                        "linear_conv_kernel_dim",
                        "linear_key_head_dim",
                        "linear_num_key_heads",
                        "linear_num_value_heads",
                        "linear_value_head_dim",
                        "num_attention_heads",
                        "num_key_value_heads",
                        "num_experts",
                        "num_local_experts",
                        "num_experts_per_tok",
                        "moe_intermediate_size",
                        "shared_expert_intermediate_size",
                        "max_position_embeddings"});
}

}  // namespace sluice::models
