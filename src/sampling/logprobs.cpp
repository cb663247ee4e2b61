#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/integer_cast.h"

namespace sluice::sampling {

Logprobs::Logprobs(std::span<const float> logits)
    : logits_(logits), largest_(*std::max_element(logits.begin(), logits.end())) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(log_weight(logit, largest_));
  log_sum_ = std::log(sum);
}

double Logprobs::operator[](std::int32_t id) const {
  return log_weight(logits_[to_size(id)], largest_) - log_sum_;
}

std::vector<TokenLogprob> Logprobs::top(std::size_t count) const {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] > -std::numeric_limits<float>::infinity()) ids.push_back(i);
  count = std::min(count, ids.size());
  const auto end = ids.begin() + count;
  std::partial_sort(ids.begin(), end, ids.end(), [this](std::int32_t a, std::int32_t b) {
    const float x = logits_[to_size(a)];
    const float y = logits_[to_size(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<TokenLogprob> tokens;
  for (auto id = ids.begin(); id != end; ++id) tokens.push_back({*id, (*this)[*id]});
  return tokens;
}

}  // namespace sluice::sampling
