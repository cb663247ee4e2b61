// The tensors that a model family has in the MLX format, and what makes them.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/config.h"
#include "convert/plan.h"
#include "convert/source.h"
#include "models/family.h"

namespace sluice::convert {

// In the order of the forward pass. `cast_to` is the type of every parameter that its family does not exempt;
// none: as stored. Fails where the checkpoint lacks a tensor or has one that no part of the model uses.
std::vector<Parameter> plan_model(Source& source, const checkpoint::Config& config,
                                  const models::ConversionRules& rules,
                                  std::optional<checkpoint::FileDType> cast_to);

}  // namespace sluice::convert
