// Draws which experts a run needed.
#pragma once

#include <string>

#include "sluice/experts.h"

namespace sluice::cli::commands {

// An SVG file with one row per layer and one column per expert: darker for more frequent use.
void write_experts_map(const ExpertUsage& usage, const std::string& model, const std::string& path);

}  // namespace sluice::cli::commands
