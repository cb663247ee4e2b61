// Streamed experts: how they were used, and a comparison of the policies that keep them in memory.
#pragma once

#include "sluice/engine.h"

namespace sluice {

struct ExpertUsage {
  std::int64_t slots = 0;  // experts per layer in memory; 0: all of them, nothing is streamed
  std::string reader;      // the method used to read files
  std::uint64_t hits = 0;  // experts that a pass needed and found in memory
  std::uint64_t misses = 0;
  std::uint64_t foreseen = 0;  // misses whose read had started before they were chosen
  std::uint64_t unused = 0;    // prefetched but not used
  std::uint64_t bytes_read = 0;
  double wait_seconds = 0;  // waiting for reads with nothing else to compute
  std::vector<std::vector<std::uint32_t>>
      uses;  // passes that needed an expert, by layer with experts and expert

  double hit_rate() const {
    return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
  }
};

// Usage since the engine was loaded.
ExpertUsage expert_usage(const Engine& engine);

// Writes how often each expert was needed: the FILE of the policy "static:FILE".
void write_expert_profile(const ExpertUsage& usage, const std::filesystem::path& path);

// Share of experts found in memory under each policy, for caches of several sizes.
struct PolicyComparison {
  std::int64_t passes = 0;          // passes counted, after as many that only warmed up the caches
  std::vector<std::int64_t> slots;  // a layer
  struct Row {
    std::string policy;
    std::vector<double> hit_rates;  // one a size
  };
  std::vector<Row> rows;  // the last one knows the future
};

// Generates `tokens` tokens at temperature 1, records which experts each one needs, and replays that under
// each policy. The engine must stream its experts (`expert_slots`), but may have slots for all of them.
PolicyComparison compare_policies(const std::shared_ptr<Engine>& engine, std::span<const std::int32_t> prompt,
                                  std::int64_t tokens, std::uint64_t seed);

}  // namespace sluice
