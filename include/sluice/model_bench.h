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
};

struct ModelBenchResult {
  double peak_gigabytes_per_second = 0;  // this machine's, measured first
  double prefill_tokens_per_second = 0;  // medians
  double decode_tokens_per_second = 0;   // of all sequences together
  double decode_bytes_per_step = 0;  // weights of the experts a step is expected to touch, states and caches
  double decode_gigabytes_per_second = 0;
  double percent_of_peak = 0;
};

ModelBenchResult bench_model(Engine& engine, const ModelBenchOptions& options);

}  // namespace sluice
