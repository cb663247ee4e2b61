// A `sample` op over different requests, in host memory.
#pragma once

#include <vector>

#include "sluice/ops/backend.h"
#include "sluice/sampling.h"

namespace sluice::sampling {

struct RowRequest {
  SamplingSettings settings;
  std::vector<float> logits;
  std::vector<std::int32_t> past = {};
  std::vector<std::int32_t> allowed = {};  // empty: all
};

struct RowResult {
  std::int32_t id = -7;
  std::int32_t position = 0;
  float logprob = 0;
  std::vector<std::int32_t> top_ids;
  std::vector<float> top_logprobs;
  std::vector<std::int32_t> counts;
};

// Rows in the order of `slots`; the settings are in the order of `requests`.
std::vector<RowResult> run_rows(ops::Backend& backend, const std::vector<RowRequest>& requests,
                                const std::vector<std::int32_t>& slots);
RowResult run_row(ops::Backend& backend, const RowRequest& request);

}  // namespace sluice::sampling
