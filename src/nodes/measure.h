// Measures the nodes and the network between them.
#pragma once

#include <filesystem>

#include "nodes/cluster.h"
#include "sluice/nodes_plan.h"
#include "sluice/ops/backend.h"

namespace sluice::nodes {

// Bytes that this node has for weights: most of `allowed`, or if that is 0 of the machine's memory, divided
// among the nodes on that machine.
double memory_for_weights(const Cluster& cluster, const ops::Backend& backend, std::uint64_t allowed);

// Called by all nodes. They measure themselves one after the other, so that nodes on one machine do not
// disturb each other; then the leading node measures its connection to each. Only that node gets all results;
// the network's are those of the slowest connection. `file` is read to measure the disk; empty: not measured.
NodesSpec measure(Cluster& cluster, const EngineOptions& options, const std::filesystem::path& file);

}  // namespace sluice::nodes
