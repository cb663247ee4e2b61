// Another program measured beside this one.
#pragma once

#include <string>

#include "sluice/model_bench.h"

namespace sluice::cli {

// `peer` is llama-bench=PATH. Both programs run the same geometry with random weights of four bits, in turns;
// medians and their ratios are printed.
void run_against(Engine& engine, const std::string& geometry, const ModelBenchOptions& options,
                 const std::string& peer, int threads, bool json);

}  // namespace sluice::cli
