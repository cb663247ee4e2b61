// Logits to the next token: a pure function of logits, settings, past and position.
#pragma once

#include <span>
#include <vector>

#include "sluice/sampling.h"

namespace sluice::sampling {

// Refuses settings that make no sense, naming the field.
void check(const SamplingSettings& settings);

// Applies bias and penalties, then temperature, top-k, top-p and min-p, and draws. `past` is what penalties
// look at. The draw depends on the seed and the number of past tokens alone, so that a run can be repeated
// from any point. NaN logits are an error. Overwrites `logits`.
std::int32_t sample(std::span<float> logits, const SamplingSettings& settings,
                    std::span<const std::int32_t> past);

// The most likely token; equal logits go to the lower id.
std::int32_t argmax(std::span<const float> logits);

// The `count` most likely tokens with the logarithms of their probabilities.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int count);
double logprob(std::span<const float> logits, std::int32_t id);

}  // namespace sluice::sampling
