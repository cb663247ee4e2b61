// Log-probabilities: the log_softmax of logits.
#pragma once

#include <span>
#include <vector>

#include "sampling/anywhere.h"
#include "sluice/sampling.h"

namespace sluice::sampling {

// The logarithm of a token's weight relative to the most likely token.
SLUICE_ANYWHERE inline double log_weight(float logit, float largest) {
  return logit == largest ? 0 : static_cast<double>(logit) - static_cast<double>(largest);
}

// Of one row of logits without NaN. With a logit of +inf, finite ones have probability 0.
class Logprobs {
 public:
  explicit Logprobs(std::span<const float> logits);

  double operator[](std::int32_t id) const;
  // The `count` most likely tokens, descending, equal ones by lower id; fewer if the others are impossible.
  std::vector<TokenLogprob> top(std::size_t count) const;

 private:
  std::span<const float> logits_;
  float largest_;
  double log_sum_;  // of exp(logit - largest)
};

}  // namespace sluice::sampling
