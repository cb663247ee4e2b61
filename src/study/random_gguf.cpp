// A random model as a GGUF file, to measure other programs.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/integer_cast.h"
#include "checkpoint/random/random_routing.h"
#include "models/geometry.h"
#include "models/model.h"
#include "sluice/ops/dtype.h"
#include "sluice/random_model.h"

namespace sluice {

namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::string_view kArchitecture = "qwen35moe";

enum class KeyType : std::uint32_t { u32 = 4, f32 = 6, string = 8, array = 9 };

// A block type of 256 weights: F16 factors at known offsets; all other bytes are scales, minima and codes,
// which may be random. A weight is the first factor times its scale times its code, minus the second factor
// times its minimum.
struct BlockType {
  std::uint32_t id;
  int bits;
  std::size_t bytes;
  std::size_t factors_at;
  double spread;   // of scale times code
  double minimum;  // mean of the minima, which the second factor multiplies; 0: none
};
constexpr std::int64_t kBlock = 256;
constexpr std::uint32_t kF32 = 0;
constexpr BlockType kBlockTypes[] = {{11, 3, 110, 108, 4 * 32, 0},       // Q3_K
                                     {12, 4, 144, 0, 7.5 * 31.5, 31.5},  // Q4_K
                                     {14, 6, 210, 208, 32 * 128, 0}};    // Q6_K

const BlockType& block_type(int bits) {
  const auto* found = std::find_if(std::begin(kBlockTypes), std::end(kBlockTypes),
                                   [&](const BlockType& type) { return type.bits == bits; });
  if (found == std::end(kBlockTypes))
    fail(ErrorKind::input, "a GGUF file has 3, 4 or 6 bits per weight (Q3_K, Q4_K, Q6_K), not {}", bits);
  return *found;
}

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // outermost first
  const BlockType* blocks;          // null: F32
  double low;
  double high;  // upper bound of F32 contents
  std::optional<checkpoint::random::SkewedRouting> skew = {};
  std::uint64_t bytes() const {
    std::uint64_t elements = 1;
    for (const std::int64_t dim : shape) elements *= static_cast<std::uint64_t>(dim);
    return blocks == nullptr ? elements * 4 : elements / kBlock * blocks->bytes;
  }
};

// Names inside a layer, in MLX and in GGUF.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kNames{{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
    {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
    {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
    {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
    {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.norm.weight", "ssm_norm.weight"},
    {"linear_attn.out_proj.weight", "ssm_out.weight"},
    {"mlp.gate.weight", "ffn_gate_inp.weight"},
    {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"},
    {"mlp.switch_mlp.gate_proj.weight", "ffn_gate_exps.weight"},
    {"mlp.switch_mlp.up_proj.weight", "ffn_up_exps.weight"},
    {"mlp.switch_mlp.down_proj.weight", "ffn_down_exps.weight"},
    {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight"},
    {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"},
}};

std::string gguf_name(const std::string& name) {
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  constexpr std::string_view kLayers = "model.layers.";
  const std::size_t dot = name.find('.', kLayers.size());
  const std::string_view rest = std::string_view(name).substr(dot + 1);
  const std::string layer = name.substr(kLayers.size(), dot - kLayers.size());
  if (rest == "mlp.shared_expert.down_proj.weight") return "blk." + layer + ".ffn_down_shexp.weight";
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == rest; });
  if (!name.starts_with(kLayers) || found == kNames.end())
    fail(ErrorKind::input, "a GGUF file has no name for '{}'; Qwen3.5 with experts has names for all", name);
  return fmt::format("blk.{}.{}", layer, found->second);
}

GgufTensor gguf_tensor(const checkpoint::random::RandomTensor& tensor, const BlockType& blocks,
                       const checkpoint::random::RandomRouting& routing) {
  GgufTensor to{gguf_name(tensor.info.name), tensor.info.shape, nullptr, tensor.low, tensor.high};
  constexpr std::string_view kWeight = ".weight";
  if (routing.zipf > 0 && tensor.info.name.ends_with(kWeight) && tensor.info.shape.size() >= 2) {
    const std::string module = tensor.info.name.substr(0, tensor.info.name.size() - kWeight.size());
    ops::Shape shape;
    for (const std::int64_t dim : tensor.info.shape) shape.push_back(dim);
    checkpoint::random::SkewedRouting skew(module, shape, routing.chosen, routing.zipf);
    if (skew.applies()) to.skew = std::move(skew);
  }
  // Dimensions of size 1 are omitted.
  std::erase(to.shape, 1);
  const bool router = to.name.find("ffn_gate_inp") != std::string::npos;
  // A skewed embedding has constants in some columns, which blocks of 256 cannot represent.
  const bool plain = router || (to.skew && to.name.starts_with("token_embd"));
  if (to.shape.size() >= 2 && !plain && to.shape.back() % kBlock == 0) to.blocks = &blocks;
  if (to.name.ends_with("ssm_a")) to.low = -2, to.high = -1;  // the rate itself, not its logarithm
  return to;
}

class Header {
 public:
  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void key(std::string_view name, std::string_view value) {
    put_text(name);
    put(KeyType::string);
    put_text(value);
    ++keys_;
  }
  void key(std::string_view name, std::int64_t value) {
    put_text(fmt::format("{}.{}", kArchitecture, name));
    put(KeyType::u32);
    put(static_cast<std::uint32_t>(value));
    ++keys_;
  }
  void key(std::string_view name, double value) {
    put_text(fmt::format("{}.{}", kArchitecture, name));
    put(KeyType::f32);
    put(static_cast<float>(value));
    ++keys_;
  }
  void key(std::string_view name, std::initializer_list<std::uint32_t> values) {
    put_text(fmt::format("{}.{}", kArchitecture, name));
    put(KeyType::array);
    put(KeyType::u32);
    put(static_cast<std::uint64_t>(values.size()));
    for (const std::uint32_t value : values) put(value);
    ++keys_;
  }
  std::uint64_t keys() const { return keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t keys_ = 0;
};

Header keys_of(const Json& text) {
  const auto number = [&](const char* name) { return text.at(name).get<std::int64_t>(); };
  Header keys;
  keys.key("general.architecture", kArchitecture);
  keys.key("tokenizer.ggml.model", "no_vocab");
  keys.key("vocab_size", number("vocab_size"));
  keys.key("block_count", number("num_hidden_layers"));
  keys.key("context_length", number("max_position_embeddings"));
  keys.key("embedding_length", number("hidden_size"));
  keys.key("feed_forward_length", number("moe_intermediate_size"));
  keys.key("attention.head_count", number("num_attention_heads"));
  keys.key("attention.head_count_kv", number("num_key_value_heads"));
  keys.key("attention.key_length", number("head_dim"));
  keys.key("attention.value_length", number("head_dim"));
  keys.key("attention.layer_norm_rms_epsilon", text.at("rms_norm_eps").get<double>());
  keys.key("rope.dimension_count", number("head_dim") / 4);
  keys.key("rope.dimension_sections", {11, 11, 10, 0});
  keys.key("rope.freq_base", text.at("rope_parameters").at("rope_theta").get<double>());
  keys.key("expert_count", number("num_experts"));
  keys.key("expert_used_count", number("num_experts_per_tok"));
  keys.key("expert_feed_forward_length", number("moe_intermediate_size"));
  keys.key("expert_shared_feed_forward_length", number("shared_expert_intermediate_size"));
  keys.key("full_attention_interval", number("full_attention_interval"));
  keys.key("ssm.conv_kernel", number("linear_conv_kernel_dim"));
  keys.key("ssm.state_size", number("linear_key_head_dim"));
  keys.key("ssm.group_count", number("linear_num_key_heads"));
  keys.key("ssm.time_step_rank", number("linear_num_value_heads"));
  keys.key("ssm.inner_size", number("linear_num_value_heads") * number("linear_value_head_dim"));
  return keys;
}

void pad(std::string& bytes, std::uint64_t to) {
  bytes.append((to - bytes.size() % to) % to, '\0');
}

std::string header_of(const Json& text, std::span<const GgufTensor> tensors) {
  const Header keys = keys_of(text);
  Header all;
  all.put(std::array<char, 4>{'G', 'G', 'U', 'F'});
  all.put(std::uint32_t{3});
  all.put(static_cast<std::uint64_t>(tensors.size()));
  all.put(keys.keys());
  Header list;
  std::uint64_t at = 0;
  for (const GgufTensor& tensor : tensors) {
    list.put_text(tensor.name);
    list.put(to_unsigned(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim)
      list.put(static_cast<std::uint64_t>(*dim));
    list.put(tensor.blocks == nullptr ? kF32 : tensor.blocks->id);
    list.put(at);
    at += (tensor.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::string bytes = all.bytes() + keys.bytes() + list.bytes();
  pad(bytes, kAlignment);
  return bytes;
}

// Packed matrices have complete rows set to zero, others single numbers.
void skew(const GgufTensor& tensor, std::span<std::byte> bytes) {
  const std::int64_t width = tensor.shape.back();
  const bool packed = tensor.blocks != nullptr;
  const std::size_t row_bytes = packed ? to_size(width / kBlock) * tensor.blocks->bytes : to_size(width * 4);
  for (std::size_t row = 0; row * row_bytes < bytes.size(); ++row) {
    std::byte* at = bytes.data() + row * row_bytes;
    if (packed) {
      if ((*tensor.skew)(static_cast<std::int64_t>(row), 0, 1) == 0) std::memset(at, 0, row_bytes);
      continue;
    }
    for (std::int64_t column = 0; column < width; ++column, at += 4) {
      float value = 0;
      std::memcpy(&value, at, 4);
      value = (*tensor.skew)(static_cast<std::int64_t>(row), column, value);
      std::memcpy(at, &value, 4);
    }
  }
}

std::vector<std::byte> contents_of(const GgufTensor& tensor) {
  using Fill = checkpoint::random::RandomTensor::Fill;
  std::vector<std::byte> bytes(to_size(tensor.bytes()));
  const bool packed = tensor.blocks != nullptr;
  checkpoint::random::fill_random({{tensor.name, checkpoint::FileDType::f32, {}},
                                   packed ? Fill::bits : Fill::uniform,
                                   tensor.low,
                                   tensor.high},
                                  bytes);
  if (packed) {
    const BlockType& type = *tensor.blocks;
    // About the spread of the other weights, centred at zero.
    const double width = std::sqrt(3.0 / tensor.shape.back());
    const ops::Float16 factors[2] = {
        ops::to_float16(static_cast<float>(width / type.spread)),
        ops::to_float16(type.minimum > 0 ? static_cast<float>(width / type.minimum) : 0.0f)};
    const std::size_t factor_bytes = type.minimum > 0 ? sizeof(factors) : sizeof(factors[0]);
    for (std::size_t at = type.factors_at; at < bytes.size(); at += type.bytes)
      std::memcpy(bytes.data() + at, factors, factor_bytes);
  }
  if (tensor.skew) skew(tensor, bytes);
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
  return bytes;
}

}  // namespace

std::uint64_t write_random_gguf(std::string_view geometry, int bits, const std::filesystem::path& file,
                                const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                                double zipf) {
  const BlockType& blocks = block_type(bits);
  const Json config = models::geometry_config(geometry);
  if (config.at("model_type") != "qwen3_5_moe")
    fail(ErrorKind::input,
         "'{}' is not a Qwen3.5 model with experts, the only kind that can be written as GGUF", geometry);
  checkpoint::random::RandomBinder binder(16, nullptr);
  models::build(checkpoint::Config(config, std::string(geometry)), binder);
  const checkpoint::random::RandomRouting routing{
      zipf, config.at("text_config").at("num_experts_per_tok").get<std::int64_t>()};
  std::vector<GgufTensor> tensors;
  std::uint64_t total = 0;
  for (const checkpoint::random::RandomTensor& tensor : binder.tensors()) {
    tensors.push_back(gguf_tensor(tensor, blocks, routing));
    total += tensors.back().bytes();
  }
  files::FileWriter writer(file);
  writer.write(header_of(config.at("text_config"), tensors));
  std::uint64_t done = 0;
  for (const GgufTensor& tensor : tensors) {
    writer.write(contents_of(tensor));
    done += tensor.bytes();
    if (progress) progress(done, total);
  }
  writer.commit();
  return total;
}

}  // namespace sluice
