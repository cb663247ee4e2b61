#include "nodes/split.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/placement/parts.h"

namespace sluice::nodes {

namespace {

void add(LayerCost& cost, const ops::Weight& weight, double active) {
  if (!weight.present()) return;
  const double bytes = weight.bytes();
  cost.bytes += bytes;
  cost.active += bytes * active;
}
void add(LayerCost& cost, const ops::ExpertWeights& experts, double active) {
  if (experts.separate.empty()) return add(cost, experts.stack, active);
  for (const ops::Weight& expert : experts.separate) add(cost, expert, active);
}
void add(LayerCost& cost, const ops::ConstView& parameter, double active) {
  if (parameter.present()) add(cost, ops::Weight{.values = parameter, .scales = {}, .biases = {}}, active);
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// The layer counts that minimise the time of the slowest node; empty if memory is too small.
std::vector<std::int64_t> best_split(const ModelCost& model, std::span<const NodeStrength> nodes,
                                     bool within_memory) {
  const std::size_t layers = model.layers.size();
  // best[n][l]: the time of the first n nodes with the first l layers; from[n][l]: how many of the layers
  // node n - 1 has.
  std::vector best(nodes.size() + 1, std::vector<double>(layers + 1, kNever));
  std::vector from(nodes.size() + 1, std::vector<std::size_t>(layers + 1, 0));
  best[0][0] = 0;
  for (std::size_t n = 1; n <= nodes.size(); ++n)
    for (std::size_t end = n; end <= layers; ++end) {
      LayerCost held = n == 1 ? model.ends : LayerCost{};
      for (std::size_t count = 1; count <= end; ++count) {
        const LayerCost& layer = model.layers[end - count];
        held = {held.bytes + layer.bytes, held.active + layer.active};
        const NodeStrength& node = nodes[n - 1];
        if (within_memory && node.memory > 0 && held.bytes > node.memory) break;
        const double slowest = std::max(best[n - 1][end - count], held.active / node.speed);
        if (slowest < best[n][end]) {
          best[n][end] = slowest;
          from[n][end] = count;
        }
      }
    }
  if (best[nodes.size()][layers] == kNever) return {};
  std::vector<std::int64_t> counts(nodes.size());
  std::size_t end = layers;
  for (std::size_t n = nodes.size(); n > 0; --n) {
    counts[n - 1] = from[n][end];
    end -= from[n][end];
  }
  return counts;
}

// The bytes of weights that fit if the part `part` of them are experts, which lie in one memory, and the rest
// in another.
double memory_beside(double others, double experts, double part) {
  const double least = std::min(others > 0 && part < 1 ? others / (1 - part) : kNever,
                                experts > 0 && part > 0 ? experts / part : kNever);
  return least < kNever ? least : 0;
}

}  // namespace

ModelCost cost_of(const layers::Decoder& decoder) {
  ModelCost cost;
  for (const layers::DecoderLayer& layer : decoder.layers) {
    LayerCost& own = cost.layers.emplace_back();
    const auto count = [&](PartKind, const auto& part, double active) { add(own, part, active); };
    std::visit([&](const auto& mixer) { engine::placement::for_each_part_of(mixer, count); }, layer.mixer);
    std::visit([&](const auto& mlp) { engine::placement::for_each_part_of(mlp, count); }, layer.mlp);
  }
  add(cost.ends, decoder.lm_head, 1);
  if (!decoder.tied) add(cost.ends, decoder.embed_tokens, 0);
  return cost;
}

NodeStrength strength_together(std::span<const NodeStrengths> nodes, const TokenCost& token) {
  const NodeStrengths& head = nodes[0];
  if (nodes.size() == 1) return head.whole;
  NodeStrength all{.memory = 0, .speed = 0};
  bool limited = true;
  for (const NodeStrengths& node : nodes) {
    all.memory += node.processors.memory;
    all.speed += node.processors.speed;
    limited = limited && node.processors.memory > 0;
  }
  if (!limited) all.memory = 0;
  if (head.has_device) all.memory = memory_beside(head.whole.memory, all.memory, token.experts_held);
  if (token.read > 0)
    all.speed =
        token.read / ((token.read - token.experts_read) / head.whole.speed + token.experts_read / all.speed);
  return all;
}

std::vector<std::int64_t> split_layers(const ModelCost& model, std::span<const NodeStrength> nodes) {
  if (nodes.size() > model.layers.size())
    fail(ErrorKind::input, "{} nodes cannot share {} layers: each needs at least one", nodes.size(),
         model.layers.size());
  std::vector<std::int64_t> counts = best_split(model, nodes, true);
  return counts.empty() ? best_split(model, nodes, false) : counts;
}

std::vector<std::int64_t> split_experts(const ExpertCost& model, std::span<const NodeStrengths> nodes) {
  if (std::ssize(nodes) > model.experts)
    fail(ErrorKind::input, "{} nodes cannot share {} experts: each needs at least one", nodes.size(),
         model.experts);
  std::vector<std::int64_t> counts(nodes.size(), 1);
  const auto has_room = [&](std::size_t n) {
    const double held = (n == 0 ? model.dense : 0) + model.bytes * to_double(counts[n] + 1);
    return nodes[n].processors.memory == 0 || held <= nodes[n].processors.memory;
  };
  // One at a time to the node that is fastest with one more, preferring nodes that have room.
  for (auto left = model.experts - std::ssize(nodes); left > 0; --left) {
    std::size_t best = 0;
    std::pair best_key(true, kNever);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const std::pair key(!has_room(n), to_double(counts[n] + 1) / nodes[n].processors.speed);
      if (key < best_key) {
        best = n;
        best_key = key;
      }
    }
    ++counts[best];
  }
  return counts;
}

}  // namespace sluice::nodes
