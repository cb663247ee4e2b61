// What the head of a stage asks of those that hold experts for it, in one message: `compute` with the number
// of the layer among those with experts, the phase, the type of rows, choices, the rows that they name, and
// which experts the next layer may ask for. The answer is a row per choice, in their order and of that type.
#pragma once

#include "layers/moe/gathered_choices.h"
#include "nodes/wire.h"

namespace sluice::nodes {

enum class ExpertCommand : std::uint8_t { compute, quit };

}  // namespace sluice::nodes
