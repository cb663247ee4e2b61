// How a model's makers want it sampled.
#pragma once

#include <filesystem>
#include <optional>

#include "sluice/sampling.h"

namespace sluice {

// What generation_config.json sets; empty where it says nothing, or is not there.
struct GenerationConfig {
  std::optional<double> temperature;  // 0 where it says do_sample: false
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;

  // Overwrites what is set here.
  void apply_to(SamplingSettings& settings) const;
};

GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace sluice
