// Who holds what. The layers are shared among stages, contiguous ones each; a stage is one node or several,
// of which the first, its head, holds all that every token uses and each holds some experts of every layer.
// One node per stage shares layers alone, a single stage experts alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layer_share.h"

namespace sluice::nodes {

struct Stage {
  std::int64_t layers = 0;            // 0: not settled
  std::vector<std::int64_t> experts;  // of every layer, by node; of a node alone, or 0: not settled

  std::int64_t nodes() const { return std::ssize(experts); }
};
using Layout = std::vector<Stage>;

// As somebody wrote it, nodes in the order of their ranks:
//   "auto"                       layers, one node per stage
//   "12,20,8"                    so many of them
//   "experts", "experts:64,192"  a single stage
//   "groups:2,2"                 stages of so many nodes
//   "12:64+192,28:100+156"       layers of each stage, and experts of its nodes
// Throws where it is not for so many nodes.
Layout parse_layout(const std::string& text, int nodes);

// What is one node's.
struct NodePlace {
  std::vector<int> heads;  // ranks, of all stages
  std::size_t stage = 0;
  engine::LayerShare::Range layers;
  // The first expert of each node of the stage, and how many there are; empty where it is one alone.
  std::vector<std::int64_t> first_experts;

  int head() const { return heads[stage]; }
};
NodePlace place_of(const Layout& layout, int rank);

}  // namespace sluice::nodes
