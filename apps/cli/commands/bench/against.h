// Measures another program beside this one.
#pragma once

#include <string>

#include "commands/bench/bench_csv.h"
#include "sluice/model_bench.h"

namespace sluice::cli::commands::bench {

struct SideBySide {
  std::string geometry;
  int bits = 4;
  std::string peer;  // llama-bench=PATH, or llama-batched-bench=PATH for several sequences
  int threads = 0;   // 0: one per core
};

// Both programs run the same geometry with random weights of as many bits, in turns; medians and their ratios
// are printed, and appended to a file of figures if one is given.
void run_against(Engine& engine, const SideBySide& what, const ModelBenchOptions& options,
                 const Output& output);

}  // namespace sluice::cli::commands::bench
