// A picture of which experts a run needed.
#pragma once

#include <string>

#include "sluice/experts.h"

namespace sluice::cli {

// A PNG with a row a layer and a column an expert: the darker, the more often it was needed.
void write_experts_map(const ExpertUsage& usage, const std::string& path);

}  // namespace sluice::cli
