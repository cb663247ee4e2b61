#include "engine/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sluice::engine {

namespace {

class Counter {
 public:
  explicit Counter(ModelSummary& summary) : summary_(summary) {}

  // Counts a weight, of which a token uses the fraction `active`.
  void add(const std::string& kind, const ops::Weight& weight, double active = 1) {
    if (!weight.present()) return;
    const std::int64_t parameters = weight.shape().elements();
    const std::size_t bytes = weight.bytes();
    ModelSummary::Part& part = this->part(kind);
    part.parameters += parameters;
    part.bytes += bytes;
    summary_.parameters += parameters;
    summary_.weight_bytes += bytes;
    summary_.active_parameters += static_cast<std::int64_t>(static_cast<double>(parameters) * active);
    summary_.bytes_per_token += static_cast<std::size_t>(static_cast<double>(bytes) * active);
    format_bytes_[format(weight)] += bytes;
  }
  void add(const std::string& kind, const ops::ExpertWeights& experts, double active) {
    if (experts.separate.empty()) return add(kind, experts.stack, active);
    for (const ops::Weight& expert : experts.separate) add(kind, expert, active);
  }
  void add(const std::string& kind, const ops::ConstView& parameter) {
    if (!parameter.present()) return;
    add(kind, ops::Weight{.values = parameter, .scales = {}, .biases = {}});
  }
  void finish() {
    for (const auto& [format, bytes] : format_bytes_)
      summary_.formats.push_back(
          fmt::format("{}: {:.1f}%", format,
                      100.0 * static_cast<double>(bytes) / static_cast<double>(summary_.weight_bytes)));
  }

 private:
  ModelSummary::Part& part(const std::string& kind) {
    const auto found = std::find_if(summary_.parts.begin(), summary_.parts.end(),
                                    [&](const ModelSummary::Part& part) { return part.kind == kind; });
    if (found != summary_.parts.end()) return *found;
    return summary_.parts.emplace_back(ModelSummary::Part{kind, 0, 0});
  }
  static std::string format(const ops::Weight& weight) {
    if (!weight.quantized()) return std::string(name(weight.values.dtype));
    if (weight.mode != ops::QuantMode::affine) return std::string(name(weight.mode));
    return fmt::format("{}-bit g{}", weight.bits, weight.group_size);
  }

  ModelSummary& summary_;
  std::map<std::string, std::size_t> format_bytes_;
};

void count(Counter& counter, const layers::Attention& a) {
  for (const ops::Weight* weight : {&a.q_proj, &a.k_proj, &a.v_proj, &a.o_proj})
    counter.add("attention", *weight);
  counter.add("norms", a.q_norm.weight);
  counter.add("norms", a.k_norm.weight);
}

void count(Counter& counter, const layers::GatedDeltaNet& net) {
  for (const ops::Weight* weight :
       {&net.in_proj_qkv, &net.in_proj_z, &net.in_proj_b, &net.in_proj_a, &net.out_proj})
    counter.add("delta net", *weight);
  for (const ops::ConstView* parameter : {&net.conv1d, &net.A_log, &net.dt_bias, &net.norm.weight})
    counter.add("delta net", *parameter);
}

void count(Counter& counter, const layers::Mla& mla) {
  for (const ops::Weight* weight : {&mla.q_proj, &mla.q_a_proj, &mla.q_b_proj, &mla.kv_a_proj_with_mqa,
                                    &mla.kv_b_proj, &mla.embed_q, &mla.unembed_out, &mla.o_proj})
    counter.add("latent attention", *weight);
  counter.add("norms", mla.q_a_layernorm.weight);
  counter.add("norms", mla.kv_a_layernorm.weight);
}

void count(Counter& counter, const layers::Mlp& mlp, const std::string& kind = "feed-forward") {
  for (const ops::Weight* weight : {&mlp.gate_proj, &mlp.up_proj, &mlp.down_proj}) counter.add(kind, *weight);
}

void count(Counter& counter, const layers::Moe& moe) {
  const double active =
      static_cast<double>(moe.router.top_k) / static_cast<double>(moe.router.gate.shape()[0]);
  counter.add("router", moe.router.gate);
  counter.add("router", moe.router.selection_bias);
  for (const ops::ExpertWeights* experts : {&moe.gate_proj, &moe.up_proj, &moe.down_proj})
    counter.add("experts", *experts, active);
  count(counter, moe.shared_expert, "shared expert");
  counter.add("shared expert", moe.shared_expert_gate);
}

}  // namespace

ModelSummary summarize(const models::Model& model, ops::DType cache_type) {
  const layers::Decoder& decoder = model.decoder;
  ModelSummary summary;
  summary.architecture = model.architecture;
  summary.layers = static_cast<std::int64_t>(decoder.layers.size());
  summary.hidden = decoder.hidden;
  summary.vocab = decoder.vocab;
  summary.max_positions = model.max_positions;
  Counter counter(summary);
  // Of the embedding a token reads one row, unless it is the output head too.
  const bool tied = decoder.lm_head.values.data == decoder.embed_tokens.values.data;
  counter.add("embedding", decoder.embed_tokens, tied ? 1.0 : 1.0 / static_cast<double>(decoder.vocab));
  for (const layers::DecoderLayer& layer : decoder.layers) {
    counter.add("norms", layer.input_layernorm.weight);
    counter.add("norms", layer.post_attention_layernorm.weight);
    std::visit([&](const auto& mixer) { count(counter, mixer); }, layer.mixer);
    std::visit([&](const auto& mlp) { count(counter, mlp); }, layer.mlp);
    summary.linear_layers += std::holds_alternative<layers::GatedDeltaNet>(layer.mixer) ? 1 : 0;
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp)) {
      summary.experts = moe->router.gate.shape()[0];
      summary.experts_per_token = moe->router.top_k;
    }
  }
  counter.add("norms", decoder.norm.weight);
  if (!tied) counter.add("output head", decoder.lm_head);
  counter.finish();
  const std::size_t one = state::StatePool::bytes(decoder.states(), 1, 1, cache_type);
  const std::size_t two = state::StatePool::bytes(decoder.states(), 1, 2, cache_type);
  summary.cache_bytes_per_position = two - one;
  summary.state_bytes = one - summary.cache_bytes_per_position;
  return summary;
}

}  // namespace sluice::engine
