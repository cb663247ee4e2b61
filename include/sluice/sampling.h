// How the next token is chosen from the logits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

// Applied in this order: penalties, logit_bias, the mask of allowed tokens if there is one, temperature,
// top_k, top_p, min_p. The draw of a token depends only on the seed, its position and its logits, so a run
// can be repeated from any point and does not depend on what else runs.
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
  // Most likely tokens reported with each choice, up to 20; 0: the log-probability of the chosen token alone;
  // -1: nothing.
  int logprobs = -1;
};

// Log-probabilities are the log_softmax of the logits after penalties, bias and
// mask, but before temperature, top_k, top_p and min_p, as in the OpenAI
// protocol.
struct TokenLogprob {
  std::int32_t id = 0;
  double logprob = 0;
};

struct SampledToken {
  std::int32_t id = -1;
  double logprob = 0;             // if it was requested
  std::vector<TokenLogprob> top;  // in falling order, ties by lower id; without impossible tokens
};

}  // namespace sluice
