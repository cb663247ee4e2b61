#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "engine/answer/answer_stream.h"

namespace sluice {

namespace {

// Generates tokens until the answer or the context ends.
void continue_answer(Session& session, engine::answer::AnswerStream& answer,
                     const std::function<bool(const GeneratedToken&)>& token, Clock::time_point start) {
  if (!answer.open()) return;
  SampledToken chosen = session.sample(answer.settings(), answer.candidates(), answer.mask());
  const auto first = Clock::now();
  answer.result().first_token_seconds = seconds_since(start);
  for (;;) {
    const std::optional<GeneratedToken> next = answer.push(std::move(chosen));
    if (!next) break;
    const bool full = !answer.open() && answer.result().reason == FinishReason::length;
    if (token && !token(*next) && (answer.open() || full)) {
      answer.result().reason = FinishReason::cancelled;
      break;
    }
    if ((!answer.open() && !full) || session.length() == session.capacity()) break;
    // The last token is appended too, so that the session continues where the text ends.
    chosen = session.step_and_sample(answer.settings(), answer.candidates(),
                                     answer.open() ? answer.mask() : std::span<const std::uint8_t>());
    if (full) break;
  }
  if (!answer.result().ids.empty()) answer.result().decode_seconds = seconds_since(first);
}

}  // namespace

GenerateResult generate(Session& session, std::span<const std::int32_t> prompt,
                        const GenerateOptions& options,
                        const std::function<bool(const GeneratedToken&)>& token) {
  engine::answer::AnswerStream answer(session.engine(), options);
  if (prompt.empty() && session.length() == 0)
    fail(ErrorKind::input, "there is nothing to continue: the prompt is empty");
  GenerateResult& result = answer.result();
  const auto start = Clock::now();
  const bool read = session.extend(prompt, options.progress);
  result.prompt_seconds = seconds_since(start);
  if (!read) {
    result.reason = FinishReason::cancelled;
    return std::move(result);
  }
  result.prompt_tokens = std::ssize(prompt);
  continue_answer(session, answer, token, start);
  if (const auto rest = answer.rest(); rest && token) token(*rest);
  return std::move(result);
}

}  // namespace sluice
