#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/error.h"

namespace sluice::sampling {

namespace {

// One number in [0, 1) from the seed and the position (SplitMix64).
double draw(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

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

struct Candidate {
  std::int32_t id;
  double weight;  // proportional to its probability; the first has 1
};

// The candidates in falling order with top-k applied; weights are exp((logit - max) / temperature).
std::vector<Candidate> rank(std::span<const float> logits, const SamplingSettings& settings) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::size_t keep = order.size();
  if (settings.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(settings.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(), before);
  std::vector<Candidate> candidates(keep);
  const double top = logits[static_cast<std::size_t>(order[0])];
  for (std::size_t i = 0; i < keep; ++i) {
    const double logit = logits[static_cast<std::size_t>(order[i])];
    candidates[i] = {order[i], std::exp((logit - top) / settings.temperature)};
  }
  return candidates;
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
  std::vector<Candidate> candidates = rank(logits, settings);
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  double kept = 0;
  std::size_t count = 0;
  while (count < candidates.size() && candidates[count].weight >= settings.min_p &&
         (count == 0 || kept < settings.top_p * total))
    kept += candidates[count++].weight;
  double left = draw(settings.seed, past.size()) * kept;
  for (std::size_t i = 0; i < count; ++i) {
    left -= candidates[i].weight;
    if (left < 0) return candidates[i].id;
  }
  return candidates[count - 1].id;  // rounding at the very end of the range
}

double logprob(std::span<const float> logits, std::int32_t id) {
  return logits[static_cast<std::size_t>(id)] - log_sum_exp(logits);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int count) {
  SamplingSettings settings;
  settings.temperature = 1;
  settings.top_k = std::max(count, 1);
  const double normalizer = log_sum_exp(logits);
  std::vector<TokenLogprob> top;
  for (const Candidate& candidate : rank(logits, settings)) {
    if (static_cast<int>(top.size()) == count) break;
    top.push_back({candidate.id, logits[static_cast<std::size_t>(candidate.id)] - normalizer});
  }
  return top;
}

}  // namespace sluice::sampling
