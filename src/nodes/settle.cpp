#include "nodes/settle.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::nodes {

namespace {

TokenCost token_cost_of(const ModelSummary& model) {
  TokenCost costs{.read = static_cast<double>(model.bytes_per_token)};
  if (model.experts == 0) return costs;
  const auto experts = static_cast<double>(model.bytes_of(PartKind::experts));
  costs.experts_read = experts * to_double(model.experts_per_token) / to_double(model.experts);
  costs.experts_held = experts / static_cast<double>(model.weight_bytes);
  return costs;
}

// The number of experts of each of these layers; 0: none has any.
std::int64_t experts_of(std::span<const layers::DecoderLayer> layers) {
  std::int64_t experts = 0;
  for (const layers::DecoderLayer& layer : layers) {
    const auto* moe = std::get_if<layers::Moe>(&layer.mlp);
    const std::int64_t own = moe != nullptr ? moe->router.gate.shape()[0] : experts;
    if (experts != 0 && own != experts)
      fail(ErrorKind::unsupported, "nodes cannot share the experts of layers that have {} and {} of them",
           experts, own);
    experts = own;
  }
  return experts;
}

class Settling {
 public:
  Settling(const std::string& written, const engine::Core& core, std::span<const NodeStrengths> nodes)
      : written_(written),
        core_(core),
        decoder_(core.model.decoder),
        nodes_(nodes),
        cost_(cost_of(decoder_)),
        layout_(parse_layout(written, to_int(nodes.size()))) {}

  Layout settle() {
    if (layout_.size() == 1) layout_[0].layers = std::ssize(decoder_.layers);
    if (layout_[0].layers == 0) share_layers();
    check_layers();
    check_groups();
    std::int64_t layer = 0;
    std::size_t node = 0;
    for (Stage& stage : layout_) {
      if (stage.nodes() > 1) share_experts(stage, layer, nodes_.subspan(node, stage.experts.size()));
      layer += stage.layers;
      node += stage.experts.size();
    }
    return layout_;
  }

 private:
  void share_layers() {
    const TokenCost token = token_cost_of(core_.summary);
    std::vector<NodeStrength> stages;
    std::size_t node = 0;
    for (const Stage& stage : layout_) {
      stages.push_back(strength_together(nodes_.subspan(node, stage.experts.size()), token));
      node += stage.experts.size();
    }
    const std::vector<std::int64_t> counts = split_layers(cost_, stages);
    for (std::size_t i = 0; i < layout_.size(); ++i) layout_[i].layers = counts[i];
  }

  void check_layers() const {
    std::int64_t given = 0;
    for (const Stage& stage : layout_) given += stage.layers;
    if (given != std::ssize(decoder_.layers))
      fail(ErrorKind::input, "'{}' shares {} layers, the model has {}", written_, given,
           decoder_.layers.size());
  }

  // Otherwise some experts would have the bits of a GPU and others those of processors, as on no single
  // machine.
  void check_groups() const {
    const auto alone = [](const Stage& stage) { return stage.nodes() == 1; };
    if (!core_.backend->traits().host_memory && std::any_of(layout_.begin(), layout_.end(), alone) &&
        !std::all_of(layout_.begin(), layout_.end(), alone))
      fail(ErrorKind::unsupported,
           "'{}' has groups of one node and of several: GPUs would compute the experts of those, processors "
           "the experts of these; give every group several nodes, or choose --backend cpu",
           written_);
  }

  // For a stage that begins at layer `first`.
  void share_experts(Stage& stage, std::int64_t first, std::span<const NodeStrengths> nodes) const {
    const auto layers = std::span(decoder_.layers).subspan(to_size(first), to_size(stage.layers));
    const std::int64_t experts = experts_of(layers);
    if (experts == 0 && layers.size() == decoder_.layers.size())
      fail(ErrorKind::input, "the model has no experts that nodes could share");
    if (experts == 0)
      fail(ErrorKind::input, "layers {} to {} have no experts that {} nodes could share", first,
           first + stage.layers - 1, stage.nodes());
    if (stage.experts[0] == 0) stage.experts = split_experts(expert_cost(stage, first, experts), nodes);
    const std::int64_t given = std::accumulate(stage.experts.begin(), stage.experts.end(), std::int64_t{0});
    if (given != experts)
      fail(ErrorKind::input, "'{}' shares {} experts, each layer has {}", written_, given, experts);
  }

  ExpertCost expert_cost(const Stage& stage, std::int64_t first, std::int64_t experts) const {
    double all = first == 0 ? cost_.ends.bytes : 0;
    for (std::int64_t i = first; i < first + stage.layers; ++i) all += cost_.layers[to_size(i)].bytes;
    const double of_experts = static_cast<double>(core_.summary.bytes_of(PartKind::experts)) *
                              static_cast<double>(stage.layers) / static_cast<double>(decoder_.layers.size());
    // With a device, the dense weights take no memory from the experts.
    const double dense = core_.backend->traits().host_memory ? std::max(0.0, all - of_experts) : 0;
    return {experts, of_experts / static_cast<double>(experts), dense};
  }

  const std::string& written_;
  const engine::Core& core_;
  const layers::Decoder& decoder_;
  std::span<const NodeStrengths> nodes_;
  ModelCost cost_;
  Layout layout_;
};

}  // namespace

Layout settle(const std::string& written, const engine::Core& core, std::span<const NodeStrengths> nodes) {
  return Settling(written, core, nodes).settle();
}

}  // namespace sluice::nodes
