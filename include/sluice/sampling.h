// How the next token is chosen from the logits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

struct SamplingSettings {
  double temperature = 0;  // 0: the most likely token
  int top_k = 0;           // 0: no limit
  double top_p = 1;
  double min_p = 0;  // relative to the most likely token
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  int penalty_window = 0;  // past tokens that count for penalties; 0: all
  std::vector<std::pair<std::int32_t, double>> logit_bias = {};
  std::uint64_t seed = 0;
};

struct TokenLogprob {
  std::int32_t id = 0;
  double logprob = 0;
};

}  // namespace sluice
