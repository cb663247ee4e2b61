// Counts the tokens of thinking, and enforces its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/answer.h"

namespace sluice::answer {

class ThinkingBudget {
 public:
  // `close` are the tokens that end thinking.
  ThinkingBudget(const AnswerFormat& format, std::int64_t tokens, std::vector<std::int32_t> close);

  // Records a chosen token with its text.
  void accept(std::int32_t token, std::string_view text);
  // The token that must come next, if thinking has reached its limit.
  std::optional<std::int32_t> forced() const;

 private:
  enum class Phase { before, thinking, after };

  bool seen(std::string_view marker) const { return recent_.find(marker) != std::string::npos; }
  bool ended() const;

  std::string open_, close_text_;
  std::vector<std::string> calls_;  // markers that open a call, which also ends thinking
  std::vector<std::int32_t> close_;
  std::int64_t left_;
  std::size_t closing_ = 0;  // how many tokens of close_ were chosen
  Phase phase_;
  std::string recent_;  // the end of the text, long enough to detect a marker
};

}  // namespace sluice::answer
