#include "scheduler/prompt_budget.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::scheduler {

namespace {

constexpr double kKept = 0.97;  // weight of earlier measurements
// The target holds for nearly every turn, not on average. Each turn that misses it lowers the aim as much as
// two hundred that meet it raise it, so one turn in two hundred is late, however much costs vary.
constexpr double kLower = 0.85;
constexpr double kRaise = 1.0008;
// The part of the target that a turn may take: tokens must also reach the clients, which takes a varying
// time, because the threads that send them wait for busy processors.
constexpr double kTurnShare = 0.95;
constexpr double kLowestAim = 0.4;
// A pass that takes this many times the expected time, or this fraction of it, was affected by something
// other than its tokens: kernels that run for the first time, or a suspended machine.
constexpr double kOutlier = 3;
// The part of the target to use if the cost of a pass hardly depends on its tokens.
constexpr double kSteady = 0.9;

}  // namespace

void CostLine::add(double tokens, double seconds, double rows) {
  if (!(tokens > 0) || !(seconds > 0)) return;
  const auto mix = [](double& sum, double added) { sum = kKept * sum + added; };
  mix(weight_, 1);
  mix(tokens_, tokens);
  mix(rows_, rows);
  mix(seconds_, seconds);
  mix(tokens_tokens_, tokens * tokens);
  mix(tokens_rows_, tokens * rows);
  mix(rows_rows_, rows * rows);
  mix(tokens_seconds_, tokens * seconds);
  mix(rows_seconds_, rows * seconds);
  fit();
}

bool CostLine::take(double base, double slope, double row) {
  if (!(slope > 0) || !(base >= 0) || !(row >= 0)) return false;
  base_ = base;
  slope_ = slope;
  row_ = row;
  return true;
}

// Least squares. Terms that similar measurements cannot determine, or that would be negative, are left out:
// first the cost of depth, then the fixed cost.
void CostLine::fit() {
  constexpr double kLeast = 1e-6;
  const double tokens = tokens_ / weight_, rows = rows_ / weight_, seconds = seconds_ / weight_;
  const double tt = tokens_tokens_ / weight_ - tokens * tokens, rr = rows_rows_ / weight_ - rows * rows;
  const double tr = tokens_rows_ / weight_ - tokens * rows;
  const double ts = tokens_seconds_ / weight_ - tokens * seconds;
  const double rs = rows_seconds_ / weight_ - rows * seconds;
  varied_ = tt > kLeast * tokens_tokens_ / weight_;
  const bool deep = rr > kLeast * rows_rows_ / weight_;
  const double independent = tt * rr - tr * tr;
  if (varied_ && deep && independent > kLeast * tt * rr) {
    const double slope = (ts * rr - rs * tr) / independent, row = (rs * tt - ts * tr) / independent;
    if (take(seconds - slope * tokens - row * rows, slope, row)) return;
  }
  if (varied_ && take(seconds - ts / tt * tokens, ts / tt, 0)) return;
  if (deep && !varied_ && take(0, (seconds - rs / rr * rows) / tokens, rs / rr)) return;
  take(0, seconds / tokens, 0);
}

double CostLine::seconds(double tokens, double rows) const {
  return base_ + slope_ * tokens + row_ * rows;
}

PromptBudget::PromptBudget(const PromptBudgetOptions& options) : options_(options) {
  if (!(options.target_seconds > 0) || options.most < kChunkUnit)
    fail(ErrorKind::input,
         "scheduler: a target of {} s and passes of {} tokens; allowed is above 0 and {} or more",
         options.target_seconds, options.most, kChunkUnit);
}

void PromptBudget::decoded(double seconds) {
  if (!(seconds > 0)) return;
  // A slower step counts at once, a faster one gradually: the target must hold, not the average.
  decode_seconds_ = std::max(seconds, 0.9 * decode_seconds_ + 0.1 * seconds);
}

void PromptBudget::prefilled(std::int64_t tokens, double seconds, double rows) {
  const double count = tokens;
  if (prefill_.known()) {
    const double expected = prefill_.seconds(count, rows);
    if (seconds < expected / kOutlier)
      prefill_ = {};  // the earlier measurements were too slow
    else
      seconds = std::min(seconds, kOutlier * expected);
  }
  prefill_.add(count, seconds, rows);
}

void PromptBudget::turned(double seconds) {
  const double aim = seconds > kTurnShare * options_.target_seconds ? aim_ * kLower : aim_ * kRaise;
  aim_ = std::clamp(aim, kLowestAim, 1.0);
}

// If most of a pass's time does not depend on its tokens, as on a GPU, reading less of a prompt saves the
// waiting sequences little and costs the prompt much: a pass reads up to as many tokens as double its time,
// within the target.
bool PromptBudget::fits(std::int64_t tokens, double past) const {
  const double count = tokens;
  const double seconds = decode_seconds_ + prefill_.seconds(count, count * (past + count / 2));
  if (seconds <= aim_ * options_.target_seconds) return true;
  const double room = kSteady * options_.target_seconds;
  if (prefill_.varied()) return seconds <= room && count <= prefill_.base() / prefill_.slope();
  // Only one size has been measured: try twice that.
  return decode_seconds_ + prefill_.seconds(prefill_.size()) <= room && count <= 2 * prefill_.size();
}

std::int64_t PromptBudget::tokens(bool decoding, std::int64_t past) const {
  const std::int64_t most = options_.most / kChunkUnit * kChunkUnit;
  if (!decoding) return most;
  std::int64_t tokens = kChunkUnit;
  while (prefill_.known() && tokens < most && fits(tokens + kChunkUnit, to_double(past)))
    tokens += kChunkUnit;
  return tokens;
}

double PromptBudget::seconds(std::int64_t tokens) const {
  if (!prefill_.known()) return 0;
  const double passes = std::ceil(to_double(tokens) / to_double(options_.most));
  const double count = to_double(tokens) / passes;
  return passes * prefill_.seconds(count, count * to_double(tokens) / 2);
}

}  // namespace sluice::scheduler
