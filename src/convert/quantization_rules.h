// Which modules are quantised, with how many bits.
#pragma once

#include <vector>

#include "base/json.h"
#include "convert/plan.h"
#include "models/family.h"
#include "sluice/convert.h"

namespace sluice::convert {

// Fails where the options ask for what the format does not have.
void check_options(const ConvertOptions& options);

// Decides for every parameter, as mlx-lm does; returns the `quantization` block that says so.
Json assign_quantization(std::vector<Parameter>& parameters, const models::ConversionRules& rules,
                         int64_t layers, const ConvertOptions& options);

}  // namespace sluice::convert
