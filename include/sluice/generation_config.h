// The sampling defaults of a model's makers.
#pragma once

#include <filesystem>
#include <optional>

#include "sluice/sampling.h"

namespace sluice {

// What generation_config.json sets; empty if it sets nothing or is missing.
struct GenerationConfig {
  std::optional<double> temperature;  // 0 where it says do_sample: false
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;

  // Overwrites those of `settings` that are set here.
  void apply_to(SamplingSettings& settings) const;
};

GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace sluice
