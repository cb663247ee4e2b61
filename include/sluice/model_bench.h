// Timing a whole model.
#pragma once

#include <cstdint>

#include "sluice/engine.h"

namespace sluice {

struct ModelBenchOptions {
  std::int64_t prompt = 512;   // tokens of the prefill; 0: none
  std::int64_t generate = 64;  // decode steps; 0: none
  std::int64_t depth = 0;      // tokens already in the context
  std::int64_t batch = 1;      // sequences decoded together
  int repetitions = 3;
  bool profile = false;  // also time the ops of a prompt's pass and of a decode step one by one
};

// All equal ops of a decode step, or of a prompt's pass.
struct OpProfile {
  std::string op;
  std::string detail;  // the shape of its weight, or of its first field
  std::int64_t calls = 0;
  double microseconds = 0;  // one call
  double bytes = 0;         // bytes that one call must move
  double percent_of_bound = 0;
};

// Slowest and fastest of the repetitions.
struct SpeedRange {
  double low = 0;
  double high = 0;
};

struct ModelBenchResult {
  double peak_gigabytes_per_second = 0;  // this machine's, measured first
  double prefill_tokens_per_second = 0;  // medians
  double decode_tokens_per_second = 0;   // of all sequences together
  SpeedRange prefill_range;
  SpeedRange decode_range;
  double decode_bytes_per_step = 0;  // weights of the experts a step is expected to touch, states and caches
  double decode_gigabytes_per_second = 0;
  double percent_of_peak = 0;
  std::vector<OpProfile> profile;         // of a decode step, longest first
  std::vector<OpProfile> prompt_profile;  // of the prompt's first pass
};

ModelBenchResult bench_model(Engine& engine, const ModelBenchOptions& options);

}  // namespace sluice
