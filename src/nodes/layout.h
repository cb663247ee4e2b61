// Which node holds what. The layers are divided among stages, each a contiguous range. A stage is one or more
// nodes; the first, its head, holds everything that every token uses, and each holds some experts of every
// layer. With one node per stage only layers are shared, with a single stage only experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layer_share.h"

namespace sluice::nodes {

struct Stage {
  std::int64_t layers = 0;            // 0: not decided yet
  std::vector<std::int64_t> experts;  // of every layer, by node; for a single node all, or 0: not decided yet

  std::int64_t nodes() const { return std::ssize(experts); }
};
using Layout = std::vector<Stage>;

// Parses a layout as a user writes it, with nodes in the order of their ranks:
//   "auto"                       layers, one node per stage
//   "12,20,8"                    layers of each node
//   "experts", "experts:64,192"  a single stage
//   "groups:2,2"                 stages with that many nodes
//   "12:64+192,28:100+156"       layers of each stage, and experts of its nodes
// Throws if it does not match the number of nodes.
Layout parse_layout(const std::string& text, int nodes);

// What one node holds.
struct NodePlace {
  std::vector<int> heads;  // ranks, of all stages
  std::size_t stage = 0;
  engine::LayerShare::Range layers;
  // The first expert of each node of the stage, then the total; empty for a stage of one node.
  std::vector<std::int64_t> first_experts;

  int head() const { return heads[stage]; }
};
NodePlace place_of(const Layout& layout, int rank);

}  // namespace sluice::nodes
