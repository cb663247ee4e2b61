// How the supported model families differ in a conversion.
#pragma once

#include <string_view>
#include <vector>

#include "checkpoint/config.h"

namespace sluice::convert {

enum class Family { qwen3_5, qwen3_next, qwen3_moe, deepseek_v3 };

Family family_of(const checkpoint::Config& config);

// Modules (by the end of their path) that are routed by few numbers and keep 8 bits in groups of 64.
const std::vector<std::string_view>& eight_bit_modules(Family family);
// Parameters (by the end of their name) that keep the type they are stored in.
bool keeps_dtype(Family family, std::string_view parameter);

}  // namespace sluice::convert
