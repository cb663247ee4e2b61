// The request that the head of a stage sends to the nodes that hold its experts, in one message: `compute`,
// the number of the layer among those with experts, the phase, the type of the rows, the choices, the rows
// that they refer to, and the experts that the next layer may need. The answer has one row per choice, in
// order and of the same type.
#pragma once

#include "layers/moe/gathered_choices.h"
#include "nodes/wire.h"

namespace sluice::nodes::experts {

enum class ExpertCommand : std::uint8_t { compute, quit };

}  // namespace sluice::nodes::experts
