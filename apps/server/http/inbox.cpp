#include "server/http/inbox.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace sluice::server::http {

namespace asio = boost::asio;

Inbox::Inbox(asio::any_io_executor executor, std::size_t sequences, std::size_t most)
    : executor_(std::move(executor)),
      most_(most),
      news_(sequences),
      last_(sequences, Clock::now()),
      begun_(sequences) {}

RequestCallbacks Inbox::callbacks(std::size_t sequence) {
  RequestCallbacks callbacks;
  callbacks.progress = [self = shared_from_this()](std::int64_t tokens, std::int64_t all) {
    self->read(tokens, all);
  };
  callbacks.token = [self = shared_from_this(), sequence](const GeneratedToken& token) {
    self->token(sequence, token);
  };
  callbacks.done = [self = shared_from_this(), sequence](const RequestResult& result) {
    self->done(sequence, result);
  };
  return callbacks;
}

void Inbox::token(std::size_t sequence, const GeneratedToken& token) {
  const std::lock_guard lock(mutex_);
  News& news = news_[sequence];
  const auto now = Clock::now();
  if (!begun_[sequence]) news.first = true;
  begun_[sequence] = true;
  news.tokens.push_back(token);
  news.intervals.push_back(std::chrono::duration<double>(now - std::exchange(last_[sequence], now)).count());
  bytes_ += sizeof(GeneratedToken) + token.text.size() + token.top.size() * sizeof(TokenLogprob);
  wake();
}

void Inbox::done(std::size_t sequence, const RequestResult& result) {
  const std::lock_guard lock(mutex_);
  news_[sequence].result = result;
  wake();
}

void Inbox::read(std::int64_t tokens, std::int64_t all) {
  const std::lock_guard lock(mutex_);
  if (!progress_) progress_ = PromptProgress{tokens, all, tokens};
  progress_->read = tokens;
  progress_->all = all;
  wake();
}

void Inbox::wake() {
  fresh_ = true;
  if (!std::exchange(waiting_, false)) return;
  asio::post(executor_, [self = shared_from_this()] {
    if (self->timer_ != nullptr) self->timer_->cancel();
  });
}

asio::awaitable<void> Inbox::wait(std::chrono::milliseconds longest) {
  asio::steady_timer timer(executor_, longest);
  {
    const std::lock_guard lock(mutex_);
    if (fresh_) co_return;
    waiting_ = true;
  }
  // A wake-up aborts the wait, and so does a cancellation; the next operation reports the latter.
  timer_ = &timer;
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  timer_ = nullptr;
  const std::lock_guard lock(mutex_);
  waiting_ = false;
}

std::vector<News> Inbox::take() {
  const std::lock_guard lock(mutex_);
  fresh_ = false;
  bytes_ = 0;
  return std::exchange(news_, std::vector<News>(news_.size()));
}

std::optional<PromptProgress> Inbox::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

bool Inbox::overflowed() const {
  const std::lock_guard lock(mutex_);
  return bytes_ > most_;
}

}  // namespace sluice::server::http
