#include "convert/model_plan.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"
#include "base/quote.h"

namespace sluice::convert {
namespace {

using checkpoint::FileDType;
using checkpoint::TensorEntry;

class ModelPlan {
 public:
  ModelPlan(Source& source, const checkpoint::Config& config, const models::ConversionRules& rules,
            std::optional<FileDType> cast_to)
      : source_(source), config_(config), rules_(rules), cast_to_(cast_to) {}

  std::vector<Parameter> build() {
    find_prefixes();
    find_convention();
    layers_ = config_.get<int64_t>("num_hidden_layers");
    if (layers_ < 1)
      fail(ErrorKind::checkpoint, "{}: 'num_hidden_layers' is {}, expected at least 1", config_.where(),
           layers_);
    matrix("embed_tokens");
    for (int64_t i = 0; i < layers_; ++i) decoder_layer(fmt::format("layers.{}.", i));
    norm("norm");
    head();
    refuse_left_over();
    return std::move(parameters_);
  }

 private:
  struct Prefix {
    std::string from;
    std::string to;
  };

  bool has(const std::string& path) const { return source_.has(body_.from + path); }
  Piece take(const std::string& path, size_t dimensions) {
    return source_.take(body_.from + path, dimensions);
  }

  void find_prefixes() {
    if (!rules_.wrapped) {
      body_ = {"model.", "model."};
      head_ = {"lm_head", "lm_head"};
      return;
    }
    // The language model is in a wrapper, a text-only export, or an MLX checkpoint.
    body_ = {"model.", "language_model.model."};
    for (const char* prefix : {"model.language_model.", "language_model.model."})
      if (source_.has(std::string(prefix) + "embed_tokens.weight")) body_.from = prefix;
    head_ = {"lm_head", "language_model.lm_head"};
    if (source_.has(head_.to + ".weight")) head_.from = head_.to;
  }

  // Norms that multiply by 1 + w are stored as w by Hugging Face, as 1 + w by MLX. The values do not show
  // which, but MLX also transposes the convolution. Families without convolution have no such norms.
  void find_convention() {
    for (const TensorEntry* tensor : source_.files().tensors())
      raw_ = raw_ ||
             (tensor->name.ends_with("conv1d.weight") && !tensor->shape.empty() && tensor->shape.back() != 1);
  }

  bool keeps_dtype(std::string_view name) const {
    return !rules_.keeps_dtype.empty() && name.ends_with(rules_.keeps_dtype);
  }

  // `shape` is the output's; all pieces have one type.
  Parameter& add(std::string name, std::vector<int64_t> shape, std::vector<Piece> pieces) {
    Parameter parameter;
    const FileDType stored = pieces.front().tensor->dtype;
    parameter.source = stored == FileDType::f8_e4m3 ? FileDType::bf16 : stored;
    parameter.dtype = cast_to_ && !keeps_dtype(name) ? *cast_to_ : parameter.source;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.pieces = std::move(pieces);
    parameters_.push_back(std::move(parameter));
    return parameters_.back();
  }

  Parameter& whole(const std::string& path, size_t dimensions) {
    const Piece piece = take(path, dimensions);
    return add(body_.to + path, piece.tensor->shape, {piece});
  }

  void matrix(const std::string& module) {
    whole(module + ".weight", 2).quantizable = true;
    if (has(module + ".bias")) whole(module + ".bias", 1);
  }

  void matrices(const std::string& prefix, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) matrix(prefix + std::string(name));
  }

  void norm(const std::string& module) { whole(module + ".weight", 1).add_one = raw_; }

  void decoder_layer(const std::string& layer) {
    norm(layer + "input_layernorm");
    if (rules_.latent_attention) {
      latent_attention(layer + "self_attn.");
    } else if (has(layer + "linear_attn.A_log")) {
      gated_delta_net(layer + "linear_attn.");
    } else {
      matrices(layer + "self_attn.", {"q_proj", "k_proj", "v_proj", "o_proj"});
      norm(layer + "self_attn.q_norm");
      norm(layer + "self_attn.k_norm");
    }
    norm(layer + "post_attention_layernorm");
    if (has(layer + "mlp.gate.weight")) {
      mixture(layer + "mlp.");
    } else {
      matrices(layer + "mlp.", {"gate_proj", "up_proj", "down_proj"});
    }
  }

  void gated_delta_net(const std::string& prefix) {
    for (const std::string_view name : rules_.delta_net_inputs) matrix(prefix + std::string(name));
    Parameter& conv = whole(prefix + "conv1d.weight", 3);
    // [channels, 1, taps] becomes [channels, taps, 1]: the same values in the same order.
    if (conv.shape[2] != 1) std::swap(conv.shape[1], conv.shape[2]);
    if (conv.shape[2] != 1)
      fail(ErrorKind::checkpoint, "tensor {} has the shape [{}], expected [channels,1,taps]",
           quote(body_.from + prefix + "conv1d.weight"), fmt::join(conv.pieces[0].tensor->shape, ","));
    whole(prefix + "A_log", 1);
    whole(prefix + "dt_bias", 1);
    whole(prefix + "norm.weight", 1);
    matrix(prefix + "out_proj");
  }

  void latent_attention(const std::string& prefix) {
    if (has(prefix + "q_proj.weight")) {
      matrix(prefix + "q_proj");
    } else {
      matrix(prefix + "q_a_proj");
      norm(prefix + "q_a_layernorm");
      matrix(prefix + "q_b_proj");
    }
    matrix(prefix + "kv_a_proj_with_mqa");
    norm(prefix + "kv_a_layernorm");
    if (has(prefix + "kv_b_proj.weight")) {
      split_latent_projection(prefix);
    } else {
      for (const char* name : {"embed_q.weight", "unembed_out.weight"})
        whole(prefix + name, 3).quantizable = true;
    }
    matrix(prefix + "o_proj");
  }

  // Each head's keys are absorbed into the query, transposed, and its values into the output.
  void split_latent_projection(const std::string& prefix) {
    const auto heads = config_.get<int64_t>("num_attention_heads");
    const auto nope = config_.get<int64_t>("qk_nope_head_dim");
    const auto value = config_.get<int64_t>("v_head_dim");
    const Piece both = take(prefix + "kv_b_proj.weight", 2);
    const int64_t rows = both.tensor->shape[0];
    const int64_t rank = both.tensor->shape[1];
    if (heads < 1 || nope < 1 || value < 1 || rows % heads != 0 || rows / heads - nope != value) {
      fail(ErrorKind::checkpoint, "tensor {} has {} rows, expected {} heads of {} + {}",
           quote(both.tensor->name), rows, heads, nope, value);
    }
    std::vector<Piece> keys(to_size(heads), both);
    std::vector<Piece> values = keys;
    for (int64_t h = 0; h < heads; ++h) {
      const size_t at = h;
      keys[at].first_row = h * (nope + value);
      keys[at].transposed = true;
      values[at].first_row = h * (nope + value) + nope;
    }
    add(body_.to + prefix + "embed_q.weight", {heads, rank, nope}, std::move(keys)).quantizable = true;
    add(body_.to + prefix + "unembed_out.weight", {heads, value, rank}, std::move(values)).quantizable = true;
  }

  void mixture(const std::string& prefix) {
    if (rules_.dense_router) {
      whole(prefix + "gate.weight", 2);  // the router stays dense
      whole(prefix + "gate.e_score_correction_bias", 1);
    } else {
      matrix(prefix + "gate");
    }
    if (has(prefix + "experts.gate_up_proj")) {
      split_experts(prefix);
    } else {
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) stack_experts(prefix, name);
    }
    for (const char* shared : {"shared_expert.", "shared_experts."})
      if (has(prefix + shared + "gate_proj.weight"))
        matrices(prefix + shared, {"gate_proj", "up_proj", "down_proj"});
    if (rules_.shared_expert_gate) matrix(prefix + "shared_expert_gate");
  }

  // An expert's gate and up projections are stacked, gate first.
  void split_experts(const std::string& prefix) {
    const Piece fused = take(prefix + "experts.gate_up_proj", 3);
    const std::vector<int64_t>& shape = fused.tensor->shape;
    if (shape[1] % 2 != 0)
      fail(ErrorKind::checkpoint, "tensor {} has {} rows per expert, expected gate and up of equal size",
           quote(fused.tensor->name), shape[1]);
    const int64_t half = shape[1] / 2;
    for (const int64_t part : {0, 1}) {
      std::vector<Piece> pieces(to_size(shape[0]), fused);
      for (int64_t e = 0; e < shape[0]; ++e) pieces[e].first_row = e * shape[1] + part * half;
      const std::string name = prefix + "switch_mlp." + (part == 0 ? "gate_proj" : "up_proj") + ".weight";
      add(body_.to + name, {shape[0], half, shape[2]}, std::move(pieces)).quantizable = true;
    }
    const Piece down = take(prefix + "experts.down_proj", 3);
    add(body_.to + prefix + "switch_mlp.down_proj.weight", down.tensor->shape, {down}).quantizable = true;
  }

  int64_t expert_count() const {
    const auto renamed = config_.optional<int64_t>("num_local_experts");  // used by newer exporters
    return renamed && !config_.has(rules_.experts_key) ? *renamed : config_.get<int64_t>(rules_.experts_key);
  }

  void stack_experts(const std::string& prefix, const std::string& name) {
    const std::string stacked = prefix + "switch_mlp." + name + ".weight";
    if (has(stacked)) {
      whole(stacked, 3).quantizable = true;
      return;
    }
    const int64_t count = expert_count();
    if (count < 1)
      fail(ErrorKind::checkpoint, "{} says that there are {} experts, expected at least 1", config_.where(),
           count);
    std::vector<Piece> pieces;
    for (int64_t e = 0; e < count; ++e) {
      pieces.push_back(take(fmt::format("{}experts.{}.{}.weight", prefix, e, name), 2));
      const TensorEntry& first = *pieces.front().tensor;
      const TensorEntry& last = *pieces.back().tensor;
      if (last.shape != first.shape || last.dtype != first.dtype)
        fail(ErrorKind::checkpoint, "tensor {} is {} [{}], expected {} [{}] as {}", quote(last.name),
             checkpoint::name(last.dtype), fmt::join(last.shape, ","), checkpoint::name(first.dtype),
             fmt::join(first.shape, ","), quote(first.name));
    }
    const std::vector<int64_t>& one = pieces.front().tensor->shape;
    add(body_.to + stacked, {count, one[0], one[1]}, std::move(pieces)).quantizable = true;
  }

  bool tied() const { return rules_.may_be_tied && config_.get_or<bool>("tie_word_embeddings", false); }

  void head() {
    if (tied()) return;
    const Piece piece = source_.take(head_.from + ".weight", 2);
    add(head_.to + ".weight", piece.tensor->shape, {piece}).quantizable = true;
  }

  // Parts that are not needed to generate text: vision, draft heads, computed tables.
  bool dropped(std::string_view name) const {
    if (name.find("rotary_emb.inv_freq") != std::string_view::npos) return true;
    if (tied() && name.starts_with(head_.from)) return true;
    if (!rules_.draft_layers)
      return name.find("mtp.") != std::string_view::npos || name.starts_with("vision_tower") ||
             name.starts_with("model.visual");
    constexpr std::string_view kLayers = "model.layers.";
    int64_t layer = 0;
    return name.starts_with(kLayers) &&
           std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer).ec ==
               std::errc() &&
           layer >= layers_;
  }

  void refuse_left_over() const {
    const TensorEntry* tensor = source_.left_over([this](std::string_view name) { return dropped(name); });
    if (tensor == nullptr) return;
    fail(
        ErrorKind::unsupported,
        "tensor {} belongs to no part of a {} model as config.json describes it: nothing is converted rather "
        "than something lost",
        quote(tensor->name), config_.model_type());
  }

  Source& source_;
  const checkpoint::Config& config_;
  const models::ConversionRules& rules_;
  const std::optional<FileDType> cast_to_;
  Prefix body_;
  Prefix head_;
  int64_t layers_ = 0;
  bool raw_ = false;  // norms store w and multiply by 1 + w
  std::vector<Parameter> parameters_;
};

}  // namespace

std::vector<Parameter> plan_model(Source& source, const checkpoint::Config& config,
                                  const models::ConversionRules& rules, std::optional<FileDType> cast_to) {
  return ModelPlan(source, config, rules, cast_to).build();
}

}  // namespace sluice::convert
