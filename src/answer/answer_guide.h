// The guide of one answer: a grammar's matcher, and the limit on thinking.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "answer/thinking_budget.h"
#include "base/function_ref.h"
#include "sluice/grammar.h"
#include "sluice/token_guide.h"

namespace sluice::answer {

// Runs `work`; a format that exceeds limits is the request's error, not a lack of this machine's resources,
// so it is reported as such.
void refuse_what_takes_too_much(FunctionRef<void()> work);

class AnswerGuide : public TokenGuide {
 public:
  explicit AnswerGuide(std::shared_ptr<const Grammar> grammar);

  // `text` gives the text of a token.
  void limit_thinking(ThinkingBudget budget, std::function<std::string_view(std::int32_t)> text);

  bool mask(std::span<std::uint8_t> allowed) override;
  void accept(std::int32_t token) override;
  bool finished() const override { return finished_; }

 private:
  Matcher matcher_;
  std::optional<ThinkingBudget> budget_;
  std::function<std::string_view(std::int32_t)> text_;
  std::vector<std::uint32_t> words_;
  bool finished_ = false;
};

}  // namespace sluice::answer
