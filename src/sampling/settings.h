#pragma once

#include "sluice/sampling.h"

namespace sluice::sampling {

// Throws if a setting is invalid, naming the field; biases may name tokens below `vocab`.
void check(const SamplingSettings& settings, std::int64_t vocab);

}  // namespace sluice::sampling
