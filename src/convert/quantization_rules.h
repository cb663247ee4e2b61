// Which modules are quantised, and with how many bits.
#pragma once

#include <vector>

#include "base/json.h"
#include "convert/plan.h"
#include "models/family.h"
#include "sluice/convert.h"

namespace sluice::convert {

// Throws if the options request something the format does not support.
void check_options(const ConvertOptions& options);

// Decides for every parameter as mlx-lm does; returns the corresponding `quantization` block.
Json assign_quantization(std::vector<Parameter>& parameters, const models::ConversionRules& rules,
                         int64_t layers, const ConvertOptions& options);

}  // namespace sluice::convert
