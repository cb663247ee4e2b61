// How fast several machines are together with a model, and in which layout, before any of them has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/engine.h"

namespace sluice {

struct NodeSpec {
  std::string name;
  double memory = 0;                 // bytes for weights; 0: enough
  double bytes_per_second = 0;       // that it reads from memory
  double disk_bytes_per_second = 0;  // 0: unknown
  // Of its GPU, which holds what every token uses where experts are shared, and all of it where layers are;
  // 0: it has none.
  double gpu_memory = 0;
  double gpu_bytes_per_second = 0;

  bool has_gpu() const { return gpu_bytes_per_second > 0; }
};

struct NetworkSpec {
  double bytes_per_second = 0;
  double round_trip = 0;  // seconds, of a small message and its answer
};

struct NodesSpec {
  std::vector<NodeSpec> nodes;  // the one that leads first
  NetworkSpec network;
};

// From {"nodes": [{"name": "anna", "memory_gb": 64, "gb_per_s": 80}, ...], "network": {"gbit_per_s": 1,
// "round_trip_us": 150}}.
NodesSpec parse_nodes(std::string_view json, const std::string& where);

struct NodesPlan {
  // One way to share the model. Times are of one token of one conversation at an empty context.
  struct Layout {
    std::string name;   // "layers", "experts", or "groups" of nodes that share layers and, inside, experts
    std::string nodes;  // who holds how much, as NodesOptions::layers says it
    bool fits = false;  // all have the memory for their part
    double network_seconds = 0;
    double tokens_per_second = 0;
  };
  std::vector<Layout> layouts;  // the fastest first, those that fit before those that do not
  // What would be faster, and the best layout's tokens per second with it.
  struct Help {
    std::string what;
    double tokens_per_second = 0;
  };
  std::vector<Help> help;
};
NodesPlan plan_nodes(const ModelSummary& model, const NodesSpec& spec);

}  // namespace sluice
