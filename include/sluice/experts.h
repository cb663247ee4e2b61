// Experts that are read as they are needed: what that took, and what other ways to keep them would take.
#pragma once

#include "sluice/engine.h"

namespace sluice {

struct ExpertUsage {
  std::int64_t slots = 0;  // experts per layer in memory; 0: all of them, nothing is read
  std::string reader;      // how files are read
  std::uint64_t hits = 0;  // experts a pass needed that were in memory
  std::uint64_t misses = 0;
  std::uint64_t foreseen = 0;  // of the misses: read before they were chosen
  std::uint64_t unused = 0;    // read ahead in vain
  std::uint64_t bytes_read = 0;
  double wait_seconds = 0;  // with nothing to compute but what was being read
  std::vector<std::vector<std::uint32_t>>
      uses;  // passes that needed an expert, by layer with experts and expert

  double hit_rate() const {
    return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
  }
};

// Since the engine was loaded.
ExpertUsage expert_usage(const Engine& engine);

// Writes how often each expert was needed: the FILE of the policy "static:FILE".
void write_expert_profile(const ExpertUsage& usage, const std::filesystem::path& path);

// Share of experts found in memory under each policy, for caches of several sizes.
struct PolicyComparison {
  std::int64_t passes = 0;          // that were counted, after as many that only warmed the caches up
  std::vector<std::int64_t> slots;  // a layer
  struct Row {
    std::string policy;
    std::vector<double> hit_rates;  // one a size
  };
  std::vector<Row> rows;  // the last one knows the future
};

// Generates `tokens` tokens behind the prompt with temperature 1, records which experts each one needs and
// replays that. The engine must stream its experts (`expert_slots`); it may keep them all.
PolicyComparison compare_policies(const std::shared_ptr<Engine>& engine, std::span<const std::int32_t> prompt,
                                  std::int64_t tokens, std::uint64_t seed);

}  // namespace sluice
