// The tensors of a model family in the MLX format, and how they are made.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/config.h"
#include "convert/plan.h"
#include "convert/source.h"
#include "models/family.h"

namespace sluice::convert {

// In the order of the forward pass. `cast_to` is the type of every parameter that the family does not exempt;
// none: as stored. Throws if the checkpoint lacks a tensor or has one that no part of the model uses.
std::vector<Parameter> plan_model(Source& source, const checkpoint::Config& config,
                                  const models::ConversionRules& rules,
                                  std::optional<checkpoint::FileDType> cast_to);

}  // namespace sluice::convert
