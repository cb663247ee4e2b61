#include "scheduler/prompt_budget.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::scheduler {

namespace {

constexpr double kKept = 0.95;  // of the weight of what was measured before
// The target is one for nearly every turn, not for the average one. Each turn that misses it lowers the aim
// as much as a hundred that hold it raise it: one turn in a hundred is late then, however much costs vary.
constexpr double kLower = 0.85;
constexpr double kRaise = 1.0015;
constexpr double kLowestAim = 0.4;
// A pass that takes so many times what was expected, or that part of it, met something else than its tokens:
// kernels that run for the first time, or a machine that was stopped.
constexpr double kOutlier = 3;
// Of the target, where the costs of a pass hardly depend on its tokens.
constexpr double kSteady = 0.9;

}  // namespace

void CostLine::add(double tokens, double seconds) {
  if (!(tokens > 0) || !(seconds > 0)) return;
  const auto mix = [](double& sum, double added) { sum = kKept * sum + added; };
  mix(weight_, 1);
  mix(tokens_, tokens);
  mix(seconds_, seconds);
  mix(squares_, tokens * tokens);
  mix(products_, tokens * seconds);
  fit();
}

// Least squares; where sizes do not differ, or the line would fall or start below 0, one through the origin.
void CostLine::fit() {
  const double spread = weight_ * squares_ - tokens_ * tokens_;
  base_ = 0;
  slope_ = seconds_ / tokens_;
  varied_ = spread > 1e-6 * weight_ * squares_;
  if (!varied_) return;
  const double slope = (weight_ * products_ - tokens_ * seconds_) / spread;
  const double base = (seconds_ - slope * tokens_) / weight_;
  if (slope <= 0 || base < 0) return;
  slope_ = slope;
  base_ = base;
}

double CostLine::seconds(double tokens) const {
  return base_ + slope_ * tokens;
}

double CostLine::tokens(double seconds) const {
  return (seconds - base_) / slope_;
}

PromptBudget::PromptBudget(const PromptBudgetOptions& options) : options_(options) {
  if (!(options.target_seconds > 0) || options.most < kChunkUnit)
    fail(ErrorKind::input,
         "scheduler: a target of {} s and passes of {} tokens; allowed is above 0 and {} or more",
         options.target_seconds, options.most, kChunkUnit);
}

void PromptBudget::decoded(double seconds) {
  if (!(seconds > 0)) return;
  // A slower step counts at once, a faster one bit by bit: the target is to hold, not the average.
  decode_seconds_ = std::max(seconds, 0.9 * decode_seconds_ + 0.1 * seconds);
}

void PromptBudget::prefilled(std::int64_t tokens, double seconds) {
  const auto count = static_cast<double>(tokens);
  if (prefill_.known()) {
    const double expected = prefill_.seconds(count);
    if (seconds < expected / kOutlier)
      prefill_ = {};  // it was the others that took too long
    else
      seconds = std::min(seconds, kOutlier * expected);
  }
  prefill_.add(count, seconds);
}

void PromptBudget::turned(double seconds) {
  const double aim = seconds > options_.target_seconds ? aim_ * kLower : aim_ * kRaise;
  aim_ = std::clamp(aim, kLowestAim, 1.0);
}

// Where most of a pass's time is spent whatever it reads, as on a GPU, reading less of a prompt saves those
// who wait little and costs it much: a pass reads as many tokens as double its time at most, within the
// target.
double PromptBudget::worthwhile() const {
  const double room = kSteady * options_.target_seconds - decode_seconds_;
  if (prefill_.varied()) return std::min(prefill_.base() / prefill_.slope(), prefill_.tokens(room));
  // Nothing is known but one size: the double of it is tried.
  return prefill_.seconds(prefill_.size()) <= room ? 2 * prefill_.size() : 0;
}

std::int64_t PromptBudget::tokens(bool decoding) const {
  const std::int64_t most = options_.most / kChunkUnit * kChunkUnit;
  if (!decoding) return most;
  if (!prefill_.known()) return kChunkUnit;
  const double fitting =
      std::max(prefill_.tokens(aim_ * options_.target_seconds - decode_seconds_), worthwhile());
  const double units = std::floor(fitting / static_cast<double>(kChunkUnit));
  const double limit = static_cast<double>(most / kChunkUnit);
  return kChunkUnit * static_cast<std::int64_t>(std::clamp(units, 1.0, limit));
}

double PromptBudget::seconds(std::int64_t tokens) const {
  if (!prefill_.known()) return 0;
  const double passes = std::ceil(static_cast<double>(tokens) / static_cast<double>(options_.most));
  return passes * prefill_.seconds(static_cast<double>(tokens) / passes);
}

}  // namespace sluice::scheduler
