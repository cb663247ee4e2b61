#include "engine/answer/answer_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/core.h"
#include "sampling/settings.h"

namespace sluice::engine::answer {

namespace {

// Ids without a token have the logits of untrained rows: never choose them.
std::int64_t choosable(const Engine& engine) {
  const std::int64_t vocab = engine.summary().vocab;
  return engine.has_tokenizer() ? std::min<std::int64_t>(vocab, core(engine).text().vocab_size()) : vocab;
}

// Alternatives may be requested in the options as well.
SamplingSettings sampling_of(const GenerateOptions& options) {
  SamplingSettings settings = options.sampling;
  if (options.logprobs != 0) settings.logprobs = options.logprobs;
  return settings;
}

bool any_of(std::span<const std::uint8_t> bits) {
  return std::any_of(bits.begin(), bits.end(), [](std::uint8_t byte) { return byte != 0; });
}

}  // namespace

AnswerStream::AnswerStream(const Engine& engine, GenerateOptions options)
    : options_(std::move(options)),
      settings_(sampling_of(options_)),
      candidates_(choosable(engine)),
      stop_ids_(options_.extra_stop_ids),
      stops_(options_.stop) {
  sampling::check(settings_, candidates_);
  if (options_.max_tokens < 0 || options_.min_tokens < 0)
    fail(ErrorKind::input, "max_tokens is {} and min_tokens {}, they must not be negative",
         options_.max_tokens, options_.min_tokens);
  if (!options_.ignore_stop_ids)
    stop_ids_.insert(stop_ids_.end(), engine.stop_ids().begin(), engine.stop_ids().end());
  if (engine.has_tokenizer()) detokenizer_.emplace(core(engine).text(), options_.skip_special);
  if (options_.max_tokens == 0) end(FinishReason::length);
  if (open_ && options_.guide && options_.guide->finished()) end(FinishReason::stop);
}

std::span<const std::uint8_t> AnswerStream::mask() {
  if (!masked()) return {};
  allowed_.resize(to_size((candidates_ + 7) / 8));
  const bool guided = options_.guide && options_.guide->mask(allowed_);
  if (!guided && !early()) return {};
  if (!guided) std::fill(allowed_.begin(), allowed_.end(), 0xff);
  if (candidates_ % 8 != 0) allowed_.back() &= static_cast<std::uint8_t>((1u << candidates_ % 8) - 1);
  if (!any_of(allowed_))
    fail(ErrorKind::input, "nothing may come next in the answer: its guide allows no token");
  if (early()) forbid_stop_ids();
  return allowed_;
}

// An answer that its guide can only end is ended.
void AnswerStream::forbid_stop_ids() {
  std::vector<std::uint8_t> others = allowed_;
  for (const std::int32_t id : stop_ids_)
    if (id >= 0 && id < candidates_) others[to_size(id) / 8] &= static_cast<std::uint8_t>(~(1u << id % 8));
  if (any_of(others)) allowed_ = std::move(others);
}

std::string AnswerStream::text_of(std::int32_t id) {
  if (!detokenizer_) return {};
  std::string text = detokenizer_->push(id);
  const bool stoppable = std::ssize(result_.ids) >= options_.min_tokens;
  return stoppable ? stops_.push(text) : text;
}

std::optional<GeneratedToken> AnswerStream::push(SampledToken chosen) {
  if (options_.guide) options_.guide->accept(chosen.id);
  if (std::find(stop_ids_.begin(), stop_ids_.end(), chosen.id) != stop_ids_.end()) {
    end(FinishReason::stop);
    return std::nullopt;
  }
  result_.ids.push_back(chosen.id);
  GeneratedToken next;
  next.id = chosen.id;
  next.text = text_of(chosen.id);
  next.logprob = chosen.logprob;
  next.top = std::move(chosen.top);
  result_.text += next.text;
  if (stops_.stopped() || (options_.guide && options_.guide->finished())) {
    end(FinishReason::stop);
  } else if (std::ssize(result_.ids) == options_.max_tokens) {
    end(FinishReason::length);
  }
  return next;
}

void AnswerStream::end(FinishReason reason) {
  if (!std::exchange(open_, false)) return;
  result_.reason = reason;
}

std::optional<GeneratedToken> AnswerStream::rest() {
  if (!detokenizer_ || stops_.stopped()) return std::nullopt;
  GeneratedToken rest;
  rest.id = -1;
  rest.text = stops_.push(detokenizer_->finish()) + stops_.finish();
  if (rest.text.empty()) return std::nullopt;
  result_.text += rest.text;
  return rest;
}

}  // namespace sluice::engine::answer
