// What the nodes and the network between them are, measured.
#pragma once

#include <filesystem>

#include "nodes/cluster.h"
#include "sluice/nodes_plan.h"
#include "sluice/ops/backend.h"

namespace sluice::nodes {

// Bytes that this node has for weights: most of what it may use, or of the machine's memory, shared by those
// on it. `allowed` is 0 where nothing is said.
double memory_for_weights(const Cluster& cluster, const ops::Backend& backend, std::uint64_t allowed);

// Called by all nodes. One after the other measures itself, so that those on one machine do not share it, and
// the one that leads then measures how it reaches each other. That one alone gets the whole; its network is
// the slowest of them. `file` is read to measure the disk; empty: it is not.
NodesSpec measure(Cluster& cluster, const EngineOptions& options, const std::filesystem::path& file);

}  // namespace sluice::nodes
