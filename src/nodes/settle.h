// From a layout as somebody wrote it to one that says everything.
#pragma once

#include "engine/core.h"
#include "nodes/layout.h"
#include "nodes/split.h"

namespace sluice::nodes {

// What is not written suits the nodes' memory and speed. Throws where the model cannot be shared so.
Layout settle(const std::string& written, const engine::Core& core, std::span<const NodeStrengths> nodes);

}  // namespace sluice::nodes
