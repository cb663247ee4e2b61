#include "sampling/settings.h"

#include <cmath>

#include "base/error.h"
#include "sluice/ops/routing/sample.h"

namespace sluice::sampling {

void check(const SamplingSettings& s, std::int64_t vocab) {
  const auto refuse = [](const char* field, double given, const char* allowed) {
    fail(ErrorKind::input, "sampling: {} is {}, allowed is {}", field, given, allowed);
  };
  // Rows store these as F32, so values beyond its range are rejected too.
  const auto finite = [](double x) { return std::isfinite(static_cast<float>(x)); };
  if (!(s.temperature >= 0) || !finite(s.temperature)) refuse("temperature", s.temperature, "0 or more");
  if (s.top_k < 0) refuse("top_k", s.top_k, "0 (no limit) or more");
  if (!(static_cast<float>(s.top_p) > 0 && s.top_p <= 1)) refuse("top_p", s.top_p, "above 0, at most 1");
  if (!(s.min_p >= 0 && s.min_p <= 1)) refuse("min_p", s.min_p, "0 to 1");
  if (!(static_cast<float>(s.repetition_penalty) > 0) || !finite(s.repetition_penalty))
    refuse("repetition_penalty", s.repetition_penalty, "above 0");
  if (!finite(s.presence_penalty)) refuse("presence_penalty", s.presence_penalty, "a finite number");
  if (!finite(s.frequency_penalty)) refuse("frequency_penalty", s.frequency_penalty, "a finite number");
  if (s.penalty_window < 0) refuse("penalty_window", s.penalty_window, "0 (all) or more");
  if (s.logprobs < -1 || s.logprobs > ops::Sample::kMostLogprobs)
    refuse("logprobs", s.logprobs, "-1 (none) to 20");
  for (const auto& [id, bias] : s.logit_bias) {
    if (id < 0 || id >= vocab)
      fail(ErrorKind::input, "sampling: logit_bias names token {}, allowed is 0 to {}", id, vocab - 1);
    if (!finite(bias)) refuse("a logit_bias", bias, "a finite number");
  }
}

}  // namespace sluice::sampling
