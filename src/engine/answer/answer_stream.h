// One answer as it comes: what may come next, what ends it, and its text without what it stopped at.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/answer/stop_text.h"
#include "sluice/session.h"
#include "text/detokenizer.h"

namespace sluice::engine {

// Whoever chooses the tokens asks for the mask before each one, tells what was chosen, and goes on while the
// answer is open.
class AnswerStream {
 public:
  // Refuses options that make no sense.
  AnswerStream(const Engine& engine, GenerateOptions options);

  const GenerateOptions& options() const { return options_; }
  const SamplingSettings& settings() const { return settings_; }
  std::int64_t candidates() const { return candidates_; }  // the first so many ids may be chosen

  bool open() const { return open_; }
  // Whether mask() may restrict the next token.
  bool masked() const { return options_.guide != nullptr || early(); }
  // The tokens that may come next, a bit each; empty: all. Valid until the next call.
  std::span<const std::uint8_t> mask();
  // Takes the token that was chosen. Nothing comes back for one that ends the answer and is no part of it.
  std::optional<GeneratedToken> push(SampledToken chosen);
  // Ends an open answer.
  void end(FinishReason reason);
  // Text that was held back because it might have become a stop, once the answer has ended. Its id is -1.
  std::optional<GeneratedToken> rest();

  GenerateResult& result() { return result_; }

 private:
  bool early() const { return std::ssize(result_.ids) < options_.min_tokens && !stop_ids_.empty(); }
  void forbid_stop_ids();
  std::string text_of(std::int32_t id);

  GenerateOptions options_;
  SamplingSettings settings_;
  std::int64_t candidates_;
  std::vector<std::int32_t> stop_ids_;
  std::optional<text::Detokenizer> detokenizer_;
  StopText stops_;
  std::vector<std::uint8_t> allowed_;
  GenerateResult result_;
  bool open_ = true;
};

}  // namespace sluice::engine
