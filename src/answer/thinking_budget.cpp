#include "answer/thinking_budget.h"

#include <algorithm>

#include "grammar/answer/call_text.h"

namespace sluice::answer {

ThinkingBudget::ThinkingBudget(const AnswerFormat& format, std::int64_t tokens,
                               std::vector<std::int32_t> close)
    : open_(format.think_open),
      close_text_(format.think_close),
      calls_(grammar::answer::call_markers(format.calls).begin.begin(),
             grammar::answer::call_markers(format.calls).begin.end()),
      close_(std::move(close)),
      left_(tokens),
      phase_(format.prompt_opens_thinking  ? Phase::thinking
             : format.prompt_ends_thinking ? Phase::after
                                           : Phase::before) {}

void ThinkingBudget::accept(std::int32_t token, std::string_view text) {
  if (phase_ == Phase::after) return;
  recent_ += text;
  if (phase_ == Phase::thinking) {
    closing_ = forced() == token ? closing_ + 1 : 0;
    --left_;
    if (ended()) phase_ = Phase::after;
  } else {
    recent_.erase(0, recent_.find_first_not_of(" \n"));
    if (seen(open_)) {
      phase_ = Phase::thinking;
    } else if (!open_.starts_with(recent_)) {
      phase_ = Phase::after;
    }
  }
  std::size_t kept = std::max(open_.size(), close_text_.size());
  for (const std::string& call : calls_) kept = std::max(kept, call.size());
  if (phase_ == Phase::thinking && recent_.size() > kept) recent_.erase(0, recent_.size() - kept);
}

bool ThinkingBudget::ended() const {
  return seen(close_text_) ||
         std::ranges::any_of(calls_, [this](std::string_view call) { return seen(call); });
}

std::optional<std::int32_t> ThinkingBudget::forced() const {
  if (phase_ != Phase::thinking || left_ > 0 || close_.empty()) return std::nullopt;
  return close_[std::min(closing_, close_.size() - 1)];
}

}  // namespace sluice::answer
