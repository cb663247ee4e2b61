// What nodes exchange before they share a model, so that the results are those of one machine.
#pragma once

#include "engine/core.h"
#include "nodes/cluster.h"
#include "nodes/layout.h"

namespace sluice::nodes {

// One property of a node that results depend on; `what` is its name in messages.
struct Fact {
  // The part of the model it concerns: all of it, what every token uses (dense), or experts that nodes share.
  enum class Of : std::uint8_t { all, dense, experts };
  std::string what;
  std::string value;
  Of of = Of::all;
};
std::vector<Fact> facts_of(const engine::Core& core);

// Identifies a checkpoint by its config, the names, types and sizes of its tensors, and samples of their
// bytes.
std::uint64_t fingerprint(const checkpoint::TensorFiles& files);

// What a node computes, by its place in a layout.
struct Part {
  bool dense = true;
  bool shared_experts = false;
};
std::vector<Part> parts_of(const Layout& layout);

// The name, facts and part of one node.
struct Introduced {
  std::string name;
  std::vector<Fact> facts;
  Part part;
};
// The first difference in what both nodes compute, as a sentence; empty: none.
std::string difference(const Introduced& first, const Introduced& other);

// Called by all nodes: compares their facts and settles the layout from the leading node's `layout`. Throws
// on every node if they cannot work together.
Layout agree(Cluster& cluster, const engine::Core& core, const std::string& program,
             const std::string& layout);

}  // namespace sluice::nodes
