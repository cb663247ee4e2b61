// What nodes tell each other before they share a model, so that results are those of one machine.
#pragma once

#include "engine/core.h"
#include "nodes/cluster.h"
#include "nodes/layout.h"

namespace sluice::nodes {

// Everything of a node that results depend on, by what people call it.
struct Fact {
  std::string what;
  std::string value;
};
std::vector<Fact> facts_of(const engine::Core& core, const std::string& program);

// Recognises a checkpoint by its config, the names, types and sizes of its tensors, and samples of them.
std::uint64_t fingerprint(const checkpoint::TensorFiles& files);

// The first difference between two nodes as a sentence; empty: there is none.
std::string difference(const std::vector<Fact>& first, const std::string& first_name,
                       const std::vector<Fact>& other, const std::string& other_name);

// Called by all nodes: they compare facts and settle who holds what, as the one that leads was told. Throws
// everywhere where they cannot.
Layout agree(Cluster& cluster, const engine::Core& core, const std::string& program,
             const std::string& layout);

}  // namespace sluice::nodes
