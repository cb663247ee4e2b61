// What nodes tell each other before they share a model, so that results are those of one machine.
#pragma once

#include "engine/core.h"
#include "nodes/cluster.h"
#include "nodes/layout.h"

namespace sluice::nodes {

// Everything of a node that results depend on, by what people call it.
struct Fact {
  // Of which part of the model: of all of it, of what every token uses, or of experts that nodes share.
  enum class Of : std::uint8_t { all, dense, experts };
  std::string what;
  std::string value;
  Of of = Of::all;
};
std::vector<Fact> facts_of(const engine::Core& core);

// Recognises a checkpoint by its config, the names, types and sizes of its tensors, and samples of them.
std::uint64_t fingerprint(const checkpoint::TensorFiles& files);

// What a node computes by its place in a layout.
struct Part {
  bool dense = true;
  bool shared_experts = false;
};
std::vector<Part> parts_of(const Layout& layout);

// The first difference, in what both compute, between two nodes as a sentence; empty: there is none.
struct Introduced {
  std::string name;
  std::vector<Fact> facts;
  Part part;
};
std::string difference(const Introduced& first, const Introduced& other);

// Called by all nodes: they compare facts and settle who holds what, as the one that leads was told. Throws
// everywhere where they cannot.
Layout agree(Cluster& cluster, const engine::Core& core, const std::string& program,
             const std::string& layout);

}  // namespace sluice::nodes
