#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/core.h"
#include "engine/stop_text.h"
#include "sampling/settings.h"
#include "sluice/session.h"
#include "text/detokenizer.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool ends(const Engine& engine, const GenerateOptions& options, std::int32_t id) {
  const auto contains = [id](const std::vector<std::int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return contains(options.extra_stop_ids) || (!options.ignore_stop_ids && contains(engine.stop_ids()));
}

// The logits of ids without a token are those of untrained rows: never choose them.
std::int64_t choosable(const Engine& engine) {
  const std::int64_t vocab = engine.summary().vocab;
  return engine.has_tokenizer() ? std::min<std::int64_t>(vocab, engine::core(engine).text().vocab_size())
                                : vocab;
}

// Alternatives may be asked for beside the settings.
SamplingSettings sampling_of(const GenerateOptions& options) {
  SamplingSettings settings = options.sampling;
  if (options.logprobs != 0) settings.logprobs = options.logprobs;
  return settings;
}

}  // namespace

GenerateResult generate(Session& session, std::span<const std::int32_t> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(const GeneratedToken&)>& token) {
  const SamplingSettings settings = sampling_of(options);
  const std::int64_t candidates = choosable(session.engine());
  sampling::check(settings, candidates);
  if (options.max_tokens < 0)
    fail(ErrorKind::input, "max_tokens is {}, it must not be negative", options.max_tokens);
  const Engine& engine = session.engine();
  if (prompt.empty() && session.length() == 0)
    fail(ErrorKind::input, "there is nothing to continue: the prompt is empty");
  GenerateResult result;
  const auto start = Clock::now();
  if (!session.extend(prompt, options.progress)) {
    result.reason = FinishReason::cancelled;
    result.prompt_seconds = seconds_since(start);
    return result;
  }
  result.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  result.prompt_seconds = seconds_since(start);

  std::optional<text::Detokenizer> detokenizer;
  if (engine.has_tokenizer()) detokenizer.emplace(engine::core(engine).text(), options.skip_special);
  engine::StopText stops(options.stop);
  auto first = start;
  SampledToken chosen;
  if (options.max_tokens > 0) chosen = session.sample(settings, candidates);
  while (static_cast<std::int64_t>(result.ids.size()) < options.max_tokens) {
    GeneratedToken next;
    next.id = chosen.id;
    next.logprob = chosen.logprob;
    next.top = std::move(chosen.top);
    if (result.ids.empty()) {
      first = Clock::now();
      result.first_token_seconds = seconds_since(start);
    }
    if (ends(engine, options, next.id)) {
      result.reason = FinishReason::stop;
      break;
    }
    result.ids.push_back(next.id);
    if (detokenizer) next.text = stops.push(detokenizer->push(next.id));
    result.text += next.text;
    const bool go_on = !token || token(next);
    if (stops.stopped() || !go_on) {
      result.reason = stops.stopped() ? FinishReason::stop : FinishReason::cancelled;
      break;
    }
    if (session.length() == session.capacity()) break;
    // The last token is appended too, so that the session continues where the text ends.
    chosen = session.step_and_sample(settings, candidates);
  }
  if (!result.ids.empty()) result.decode_seconds = seconds_since(first);
  if (detokenizer && !stops.stopped()) {
    GeneratedToken rest;
    rest.id = -1;
    rest.text = stops.push(detokenizer->finish()) + stops.finish();
    result.text += rest.text;
    if (token && !rest.text.empty()) token(rest);
  }
  return result;
}

}  // namespace sluice
