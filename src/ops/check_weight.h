// The rules for weights: which formats exist, and how their parts must match.
#pragma once

#include <string_view>

#include "sluice/ops/weight.h"

namespace sluice::ops {

void check_weight(std::string_view op, std::string_view field, const Weight& weight);
void check_expert_weights(std::string_view op, std::string_view field, const ExpertWeights& weights);

}  // namespace sluice::ops
