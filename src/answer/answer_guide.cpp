#include "answer/answer_guide.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::answer {

void refuse_what_takes_too_much(FunctionRef<void()> work) try { work(); } catch (const Error& error) {
  if (error.kind() != ErrorKind::resource) throw;
  throw Error(ErrorKind::unsupported, error.what());
}

AnswerGuide::AnswerGuide(std::shared_ptr<const Grammar> grammar)
    : matcher_(std::move(grammar)), words_(matcher_.mask_words()) {
  // The matcher caches it: the request waits for the first mask instead of a batch.
  matcher_.mask(words_);
}

void AnswerGuide::limit_thinking(ThinkingBudget budget, std::function<std::string_view(std::int32_t)> text) {
  budget_ = std::move(budget);
  text_ = std::move(text);
}

bool AnswerGuide::mask(std::span<std::uint8_t> allowed) {
  static_assert(std::endian::native == std::endian::little, "bytes of a word are in the order of their bits");
  std::ranges::fill(allowed, std::uint8_t{0});
  const std::optional<std::int32_t> forced = budget_ ? budget_->forced() : std::nullopt;
  // An incomplete character must be finished first.
  if (forced && matcher_.allows(*forced)) {
    const auto id = to_size(*forced);
    if (id / 8 >= allowed.size())
      fail(ErrorKind::input, "a mask of {} bytes has no token {}", allowed.size(), id);
    allowed[id / 8] = 1u << (id % 8);
    return true;
  }
  refuse_what_takes_too_much([this] { matcher_.mask(words_); });
  const std::size_t bytes = std::min(allowed.size(), words_.size() * sizeof(words_[0]));
  std::memcpy(allowed.data(), words_.data(), bytes);
  if (std::ranges::all_of(allowed, [](std::uint8_t byte) { return byte == 0; }))
    fail(ErrorKind::unsupported,
         "no token of this model's vocabulary can continue the answer in its required form");
  return true;
}

void AnswerGuide::accept(std::int32_t token) {
  refuse_what_takes_too_much([&] { matcher_.accept(token); });
  if (budget_) budget_->accept(token, text_(token));
  refuse_what_takes_too_much([this] { finished_ = matcher_.must_stop(); });
}

}  // namespace sluice::answer
