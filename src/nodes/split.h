// Divides layers and experts among nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/decoder.h"

namespace sluice::nodes {

struct LayerCost {
  double bytes = 0;   // of its weights
  double active = 0;  // of them, those read per token
};
// Costs of each layer and of the model's two ends, which the first node holds besides its layers.
struct ModelCost {
  std::vector<LayerCost> layers;
  LayerCost ends;
};
ModelCost cost_of(const layers::Decoder& decoder);

struct NodeStrength {
  double memory = 0;  // bytes available for weights; 0: no limit
  double speed = 1;   // bytes read per second, or anything proportional to it
};

// Strengths of a node with its GPU, if it has one, and of its processors.
struct NodeStrengths {
  NodeStrength whole = {};
  NodeStrength processors = {};
  bool has_device = false;
};

// What one token reads of a model, and how much of the model are experts.
struct TokenCost {
  double read = 0;          // bytes
  double experts_read = 0;  // of `read`
  double experts_held = 0;  // as a fraction of all weights
};
// Several nodes seen as one: the first alone holds what every token uses, on its GPU if it has one; the
// processors of all hold the experts.
NodeStrength strength_together(std::span<const NodeStrengths> nodes, const TokenCost& token);

// Contiguous layers, at least one per node, so that the slowest node is as fast as possible and, where
// possible, all have the memory for theirs.
std::vector<std::int64_t> split_layers(const ModelCost& model, std::span<const NodeStrength> nodes);

// The number of experts of each layer per node, at least one: in proportion to the speed of its processors
// and, where possible, within their memory. The first node also holds `dense` bytes there.
struct ExpertCost {
  std::int64_t experts = 0;  // per layer
  double bytes = 0;          // of one expert in every layer
  double dense = 0;          // bytes that every token uses; 0: they are on a device
};
std::vector<std::int64_t> split_experts(const ExpertCost& model, std::span<const NodeStrengths> nodes);

}  // namespace sluice::nodes
