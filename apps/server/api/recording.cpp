#include "server/api/recording.h"

#include <algorithm>
#include <iterator>

namespace sluice::server::api {

void Recording::add(std::string_view events) {
  const std::lock_guard lock(mutex_);
  while (!events.empty()) {
    constexpr std::string_view kEnd = "\n\n";
    const std::string_view event = events.substr(0, std::min(events.find(kEnd), events.size() - 2) + 2);
    events.remove_prefix(event.size());
    events_.emplace_back(event);
    bytes_ += event.size();
    room_->used += event.size();
    while (room_->used > room_->most && !events_.empty()) {
      bytes_ -= events_.front().size();
      room_->used -= events_.front().size();
      events_.pop_front();
      ++first_;
    }
  }
  tell();
}

void Recording::end() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  tell();
}

Recording::Rest Recording::from(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  Rest rest{.events = {}, .next = first_ + std::ssize(events_), .over = over_};
  for (std::int64_t i = std::max(number, first_); i < rest.next; ++i) rest.events += events_[i - first_];
  return rest;
}

std::int64_t Recording::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

std::unique_ptr<Recording::Listener> Recording::listen(std::function<void()> news) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(news));
  return std::make_unique<Listener>(*this, std::prev(listeners_.end()));
}

void Recording::tell() {
  for (const auto& listener : listeners_) listener();
}

}  // namespace sluice::server::api
