// One answer in progress: which tokens may come next, what ends it, and its text without the stop text.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/answer/stop_text.h"
#include "sluice/session.h"
#include "text/detokenizer.h"

namespace sluice::engine::answer {

// The generator gets the mask before each token, pushes the chosen token, and continues while the answer is
// open.
class AnswerStream {
 public:
  // Throws if the options are invalid.
  AnswerStream(const Engine& engine, GenerateOptions options);

  const GenerateOptions& options() const { return options_; }
  const SamplingSettings& settings() const { return settings_; }
  std::int64_t candidates() const { return candidates_; }  // only ids below this may be chosen

  bool open() const { return open_; }
  // Whether mask() may restrict the next token.
  bool masked() const { return options_.guide != nullptr || early(); }
  // The tokens that may come next, one bit each; empty: all. Valid until the next call.
  std::span<const std::uint8_t> mask();
  // Takes the chosen token. Returns nothing for one that ends the answer and is not part of it.
  std::optional<GeneratedToken> push(SampledToken chosen);
  // Ends an open answer.
  void end(FinishReason reason);
  // After the end: text that was held back because it might have become a stop text. Its id is -1.
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

}  // namespace sluice::engine::answer
