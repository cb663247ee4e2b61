#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "ops/draw.h"

namespace sluice::sampling {

namespace {

void apply_penalties(std::span<float> logits, const SamplingSettings& settings,
                     std::span<const std::int32_t> past) {
  if (settings.repetition_penalty == 1 && settings.presence_penalty == 0 && settings.frequency_penalty == 0)
    return;
  if (settings.penalty_window > 0 && past.size() > static_cast<std::size_t>(settings.penalty_window))
    past = past.last(static_cast<std::size_t>(settings.penalty_window));
  std::unordered_map<std::int32_t, int> counts;
  for (const std::int32_t id : past) ++counts[id];
  for (const auto& [id, count] : counts) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    const auto repetition = static_cast<float>(settings.repetition_penalty);
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(settings.presence_penalty + settings.frequency_penalty * count);
  }
}

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

}  // namespace

void check(const SamplingSettings& s) {
  const auto refuse = [](const char* field, double given, const char* allowed) {
    fail(ErrorKind::input, "sampling: {} is {}, allowed is {}", field, given, allowed);
  };
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature))
    refuse("temperature", s.temperature, "0 or more");
  if (s.top_k < 0) refuse("top_k", s.top_k, "0 (no limit) or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) refuse("top_p", s.top_p, "above 0, at most 1");
  if (!(s.min_p >= 0 && s.min_p <= 1)) refuse("min_p", s.min_p, "0 to 1");
  if (!(s.repetition_penalty > 0) || !std::isfinite(s.repetition_penalty))
    refuse("repetition_penalty", s.repetition_penalty, "above 0");
  if (!std::isfinite(s.presence_penalty)) refuse("presence_penalty", s.presence_penalty, "a finite number");
  if (!std::isfinite(s.frequency_penalty))
    refuse("frequency_penalty", s.frequency_penalty, "a finite number");
  if (s.penalty_window < 0) refuse("penalty_window", s.penalty_window, "0 (all) or more");
}

std::int32_t argmax(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      fail(ErrorKind::checkpoint,
           "the logit of token {} is NaN: the weights are damaged, or their format is not what "
           "config.json says",
           i);
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<std::int32_t>(best);
}

std::int32_t sample(std::span<float> logits, const SamplingSettings& settings,
                    std::span<const std::int32_t> past) {
  check(settings);
  for (const auto& [id, bias] : settings.logit_bias) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size())
      fail(ErrorKind::input, "sampling: logit_bias names token {}, allowed is 0 to {}", id,
           logits.size() - 1);
    logits[static_cast<std::size_t>(id)] += static_cast<float>(bias);
  }
  apply_penalties(logits, settings, past);
  const std::int32_t best = argmax(logits);  // finds NaN too
  if (settings.temperature == 0 || !std::isfinite(logits[static_cast<std::size_t>(best)])) return best;
  return ops::draw(logits, {settings.temperature, settings.top_k, settings.top_p, settings.min_p},
                   settings.seed, past.size());
}

double logprob(std::span<const float> logits, std::int32_t id) {
  return logits[static_cast<std::size_t>(id)] - log_sum_exp(logits);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int count) {
  std::vector<TokenLogprob> all(logits.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {static_cast<std::int32_t>(i), logits[i]};
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(
                                     std::min(all.size(), static_cast<std::size_t>(std::max(count, 0))));
  std::partial_sort(all.begin(), end, all.end(), [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  });
  all.erase(end, all.end());
  const double normalizer = log_sum_exp(logits);
  for (TokenLogprob& one : all) one.logprob -= normalizer;
  return all;
}

}  // namespace sluice::sampling
