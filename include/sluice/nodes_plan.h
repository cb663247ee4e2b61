// Estimates how fast several machines together run a model, and with which layout, before any of them has it.
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
  double bytes_per_second = 0;       // memory bandwidth
  double disk_bytes_per_second = 0;  // 0: unknown
  // Its GPU, which holds the whole part if layers are split, and only what every token uses if experts are
  // split; 0: it has none.
  double gpu_memory = 0;
  double gpu_bytes_per_second = 0;

  bool has_gpu() const { return gpu_bytes_per_second > 0; }
};

struct NetworkSpec {
  double bytes_per_second = 0;
  double round_trip = 0;  // seconds, of a small message and its answer
};

struct NodesSpec {
  std::vector<NodeSpec> nodes;  // the leading node first
  NetworkSpec network;
};

// From {"nodes": [{"name": "anna", "memory_gb": 64, "gb_per_s": 80}, ...], "network": {"gbit_per_s": 1,
// "round_trip_us": 150}}.
NodesSpec parse_nodes(std::string_view json, const std::string& where);

struct NodesPlan {
  // One way to split the model. Times are per token of one conversation at an empty context.
  struct Layout {
    std::string name;   // "layers", "experts", or "groups" of nodes that share layers and, inside, experts
    std::string nodes;  // who holds how much, in the form of NodesOptions::layers
    bool fits = false;  // every node has the memory for its part
    bool with_gpus = false;  // otherwise processors compute everything, also on machines with a GPU
    double network_seconds = 0;
    double tokens_per_second = 0;
  };
  std::vector<Layout> layouts;  // the fastest first, those that fit before those that do not
  // What would make it faster, and the best layout's tokens per second then.
  struct Help {
    std::string what;
    double tokens_per_second = 0;
  };
  std::vector<Help> help;
};
NodesPlan plan_nodes(const ModelSummary& model, const NodesSpec& spec);

}  // namespace sluice
