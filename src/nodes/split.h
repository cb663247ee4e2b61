// Which node holds which layers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/decoder.h"

namespace sluice::nodes {

struct LayerCost {
  double bytes = 0;   // of its weights
  double active = 0;  // of them, those that one token reads
};
// Of each layer, and of the two ends of the model, which the first node holds beside its layers.
struct ModelCost {
  std::vector<LayerCost> layers;
  LayerCost ends;
};
ModelCost cost_of(const layers::Decoder& decoder);

struct NodeStrength {
  double memory = 0;  // bytes it has for weights; 0: enough
  double speed = 1;   // bytes that it reads in a second, or anything in proportion
};

// Of a node with its GPU, where it has one, and of its processors.
struct NodeStrengths {
  NodeStrength whole = {};
  NodeStrength processors = {};
  bool has_device = false;
};

// What a token reads of a model, and what of the model are experts.
struct TokenCost {
  double read = 0;          // bytes
  double experts_read = 0;  // of them
  double experts_held = 0;  // of all weights, from 0 to 1
};
// Several nodes as one: the first alone has what every token uses, on its GPU if it has one; the processors
// of all have the experts.
NodeStrength strength_together(std::span<const NodeStrengths> nodes, const TokenCost& token);

// Contiguous layers, at least one for each node: as many of each that the slowest is as fast as it can be
// and, where that is possible, that all have the memory for theirs.
std::vector<std::int64_t> split_layers(const ModelCost& model, std::span<const NodeStrength> nodes);

// How many experts of each layer each node holds, at least one: in proportion to the speed of its processors,
// and, where that is possible, within their memory. The first one also holds `dense` there.
struct ExpertCost {
  std::int64_t experts = 0;  // of each layer
  double bytes = 0;          // of one in every layer
  double dense = 0;          // of what every token uses; 0: a device has that
};
std::vector<std::int64_t> split_experts(const ExpertCost& model, std::span<const NodeStrengths> nodes);

}  // namespace sluice::nodes
