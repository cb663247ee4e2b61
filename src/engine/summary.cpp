#include "engine/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/integer_cast.h"
#include "engine/placement/parts.h"
#include "quant/formats.h"

namespace sluice {

std::string_view name(PartKind kind) {
  constexpr std::string_view kNames[] = {"embedding",     "norms",        "attention", "latent attention",
                                         "delta net",     "feed-forward", "router",    "experts",
                                         "shared expert", "output head"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::size_t ModelSummary::bytes_of(PartKind kind) const {
  std::size_t bytes = 0;
  for (const Part& part : parts)
    if (part.kind == kind) bytes += part.bytes;
  return bytes;
}

}  // namespace sluice

namespace sluice::engine {

namespace {

class Counter {
 public:
  explicit Counter(ModelSummary& summary) : summary_(summary) {}

  // Counts a weight of which a token uses the fraction `active`.
  void add(PartKind kind, const ops::Weight& weight, double active) {
    if (!weight.present()) return;
    const std::int64_t parameters = weight.shape().elements();
    const std::size_t bytes = weight.bytes();
    ModelSummary::Part& part = this->part(kind);
    part.parameters += parameters;
    part.bytes += bytes;
    summary_.parameters += parameters;
    summary_.weight_bytes += bytes;
    summary_.active_parameters += static_cast<std::int64_t>(to_double(parameters) * active);
    summary_.bytes_per_token += static_cast<std::size_t>(to_double(bytes) * active);
    format_bytes_[quant::label(weight)] += bytes;
  }
  void add(PartKind kind, const ops::ExpertWeights& experts, double active) {
    if (experts.separate.empty()) return add(kind, experts.stack, active);
    for (const ops::Weight& expert : experts.separate) add(kind, expert, active);
  }
  void add(PartKind kind, const ops::ConstView& parameter, double active) {
    if (!parameter.present()) return;
    add(kind, ops::Weight{.values = parameter, .scales = {}, .biases = {}}, active);
  }
  void finish() {
    for (const auto& [format, bytes] : format_bytes_)
      summary_.formats.push_back(
          fmt::format("{}: {:.1f}%", format, 100.0 * bytes / to_double(summary_.weight_bytes)));
  }

 private:
  ModelSummary::Part& part(PartKind kind) {
    const auto found = std::find_if(summary_.parts.begin(), summary_.parts.end(),
                                    [&](const ModelSummary::Part& part) { return part.kind == kind; });
    if (found != summary_.parts.end()) return *found;
    return summary_.parts.emplace_back(ModelSummary::Part{kind, 0, 0});
  }

  ModelSummary& summary_;
  std::map<std::string, std::size_t> format_bytes_;
};

}  // namespace

ModelSummary summarize(const models::Model& model, const state::CacheFormat& cache) {
  const layers::Decoder& decoder = model.decoder;
  ModelSummary summary;
  summary.architecture = model.architecture;
  summary.layers = static_cast<std::int64_t>(decoder.layers.size());
  summary.hidden = decoder.hidden;
  summary.vocab = decoder.vocab;
  summary.max_positions = model.max_positions;
  Counter counter(summary);
  placement::for_each_part(decoder, [&](PartKind kind, const auto& tensor, double active) {
    if (decoder.tied && kind == PartKind::output_head) return;
    counter.add(kind, tensor, decoder.tied && kind == PartKind::embedding ? 1.0 : active);
  });
  for (const layers::DecoderLayer& layer : decoder.layers) {
    summary.linear_layers += std::holds_alternative<layers::GatedDeltaNet>(layer.mixer) ? 1 : 0;
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp)) {
      summary.experts = moe->router.gate.shape()[0];
      summary.experts_per_token = moe->router.top_k;
    }
  }
  counter.finish();
  const state::StateBytes states = state::bytes_of(decoder.states(), cache);
  summary.cache_bytes_per_position = states.page / to_size(state::kPageRows);
  summary.state_bytes = states.slot;
  return summary;
}

}  // namespace sluice::engine
