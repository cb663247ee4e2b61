// Completes a layout that a user wrote.
#pragma once

#include "engine/core.h"
#include "nodes/layout.h"
#include "nodes/split.h"

namespace sluice::nodes {

// Fills in what was left open to suit the nodes' memory and speed. Throws if the model cannot be shared this
// way.
Layout settle(const std::string& written, const engine::Core& core, std::span<const NodeStrengths> nodes);

}  // namespace sluice::nodes
