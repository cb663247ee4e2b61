// A grammar's matcher, and what limits thinking, as the guide of one answer.
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

// A form that passes its limits lacks nothing of this machine's: whoever asked for it hears why it is
// refused.
void refuse_what_takes_too_much(FunctionRef<void()> work);

class AnswerGuide : public TokenGuide {
 public:
  explicit AnswerGuide(std::shared_ptr<const Grammar> grammar);

  // `text` tells what a token stands for.
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
