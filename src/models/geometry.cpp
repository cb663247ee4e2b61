#include "models/geometry.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>

namespace sluice::models {

namespace {

Json qwen3_5_text(int hidden, int layers, int heads, int kv_heads, int value_heads) {
  return {
      {"model_type", "qwen3_5_moe_text"},
      {"hidden_size", hidden},
      {"num_hidden_layers", layers},
      {"num_attention_heads", heads},
      {"num_key_value_heads", kv_heads},
      {"head_dim", 256},
      {"linear_num_key_heads", 16},
      {"linear_num_value_heads", value_heads},
      {"linear_key_head_dim", 128},
      {"linear_value_head_dim", 128},
      {"linear_conv_kernel_dim", 4},
      {"vocab_size", 248320},
      {"tie_word_embeddings", false},
      {"max_position_embeddings", 262144},
      {"rms_norm_eps", 1e-6},
      {"full_attention_interval", 4},
      {"attn_output_gate", true},
      {"hidden_act", "silu"},
      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}}}};
}

Json qwen3_5_moe(int hidden, int layers, int heads, int value_heads, int experts, int top_k, int inner) {
  Json text = qwen3_5_text(hidden, layers, heads, 2, value_heads);
  text.update({{"num_experts", experts},
               {"num_experts_per_tok", top_k},
               {"moe_intermediate_size", inner},
               {"shared_expert_intermediate_size", inner}});
  return {{"model_type", "qwen3_5_moe"}, {"text_config", text}};
}

Json qwen3_6_27b() {
  Json text = qwen3_5_text(5120, 64, 24, 4, 48);
  text["model_type"] = "qwen3_5_text";
  text["intermediate_size"] = 17408;
  return {{"model_type", "qwen3_5"}, {"text_config", text}};
}

Json qwen3_next() {
  Json config = qwen3_5_text(2048, 48, 16, 2, 32);
  config.erase("attn_output_gate");
  config.erase("rope_parameters");
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

Json qwen3_30b() {
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

Json deepseek_v3() {
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

struct Geometry {
  std::string_view name;
  Json (*config)();
};

constexpr Geometry kGeometries[] = {
    {"qwen3.6-35b-a3b", [] { return qwen3_5_moe(2048, 40, 16, 32, 256, 8, 512); }},
    {"qwen3.5-122b-a10b", [] { return qwen3_5_moe(3072, 48, 32, 64, 256, 8, 1024); }},
    {"qwen3.5-397b-a17b", [] { return qwen3_5_moe(4096, 60, 32, 64, 512, 10, 1024); }},
    {"qwen3.6-27b", qwen3_6_27b},
    {"qwen3-next-80b-a3b", qwen3_next},
    {"qwen3-30b-a3b", qwen3_30b},
    {"deepseek-v3", deepseek_v3},
};

void apply(Json& config, std::string_view change) {
  const auto equals = change.find('=');
  const std::string_view key = change.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : change.substr(equals + 1);
  std::int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size() || value < 1)
    fail(ErrorKind::input, "geometry: '{}' must be KEY=NUMBER with a number of at least 1", change);
  Json& sizes = config.contains("text_config") ? config["text_config"] : config;
  if (key == "layers")
    sizes["num_hidden_layers"] = value;
  else if (key == "vocab")
    sizes["vocab_size"] = value;
  else if (key == "experts" && sizes.contains("num_experts"))
    sizes["num_experts"] = value;
  else if (key == "experts" && sizes.contains("n_routed_experts"))
    sizes["n_routed_experts"] = value;
  else
    fail(ErrorKind::input, "geometry: '{}' cannot be changed; known are layers, experts and vocab", key);
}

}  // namespace

std::vector<std::string_view> geometry_names() {
  std::vector<std::string_view> names;
  for (const Geometry& geometry : kGeometries) names.push_back(geometry.name);
  return names;
}

Json geometry_config(std::string_view geometry) {
  const auto colon = geometry.find(':');
  const std::string_view name = geometry.substr(0, colon);
  std::string_view changes = colon == std::string_view::npos ? "" : geometry.substr(colon + 1);
  for (const Geometry& known : kGeometries) {
    if (known.name != name) continue;
    Json config = known.config();
    while (!changes.empty()) {
      const auto comma = changes.find(',');
      apply(config, changes.substr(0, comma));
      changes = comma == std::string_view::npos ? "" : changes.substr(comma + 1);
    }
    return config;
  }
  fail(ErrorKind::input, "there is no geometry '{}'; known are {}", name, fmt::join(geometry_names(), ", "));
}

}  // namespace sluice::models
