#include "scheduler/fair_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace sluice::scheduler {

FairQueue::FairQueue(const FairQueueOptions& options) : options_(options) {
  if (options.capacity < 1 || options.quantum < 1 || !(options.ageing.count() > 0))
    fail(ErrorKind::input,
         "scheduler: capacity {} and quantum {} must be at least 1, and ageing {} s above 0",
         options.capacity, options.quantum, options.ageing.count());
}

FairQueue::Key& FairQueue::key(const std::string& name) {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& known) { return known.name == name; });
  if (found != keys_.end()) return *found;
  Key& added = keys_.emplace_back();
  added.name = name;
  return added;
}

// A key's own requests run in order of arrival; a level of priority counts as `ageing` seconds of waiting.
void FairQueue::insert(Key& key, Waiting request) {
  const auto rank = [this](const Waiting& one) {
    return std::chrono::duration<double>(one.arrived.time_since_epoch()) - one.priority * options_.ageing;
  };
  const auto place = std::upper_bound(key.waiting.begin(), key.waiting.end(), request,
                                      [&](const Waiting& a, const Waiting& b) { return rank(a) < rank(b); });
  key.waiting.insert(place, std::move(request));
  ++size_;
}

void FairQueue::push(Waiting request) {
  if (size_ >= options_.capacity) fail(ErrorKind::busy, "the queue is full: {} requests wait", size_);
  Key& owner = key(request.key);
  insert(owner, std::move(request));
}

void FairQueue::put_back(Waiting request) {
  Key& owner = key(request.key);
  owner.saved += request.cost;
  owner.waiting.push_front(std::move(request));
  ++size_;
}

std::int64_t FairQueue::level(const Key& key, Clock::time_point now) const {
  const Waiting& next = key.waiting.front();
  const std::chrono::duration<double> waited = now - std::max(next.arrived, key.served);
  return next.priority + static_cast<std::int64_t>(std::max(0.0, waited / options_.ageing));
}

std::size_t FairQueue::choose(Clock::time_point now, std::int64_t& rounds) const {
  std::int64_t highest = level(keys_[0], now);
  for (const Key& one : keys_) highest = std::max(highest, level(one, now));
  std::size_t chosen = keys_.size();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (level(keys_[i], now) != highest) continue;
    const std::int64_t missing = std::max<std::int64_t>(0, keys_[i].waiting.front().cost - keys_[i].saved);
    const std::int64_t needed = (missing + options_.quantum - 1) / options_.quantum;
    if (chosen < keys_.size() && needed >= rounds) continue;
    chosen = i;
    rounds = needed;
  }
  return chosen;
}

std::optional<Waiting> FairQueue::pop(Clock::time_point now, std::int64_t most) {
  forget_empty();
  if (keys_.empty()) return std::nullopt;
  std::int64_t rounds = 0;
  const std::size_t chosen = choose(now, rounds);
  if (keys_[chosen].waiting.front().cost > most) return std::nullopt;
  const std::int64_t highest = level(keys_[chosen], now);
  for (Key& one : keys_)
    if (level(one, now) == highest) one.saved += rounds * options_.quantum;
  Key taken = std::move(keys_[chosen]);
  keys_.erase(keys_.begin() + chosen);
  Waiting request = std::move(taken.waiting.front());
  taken.waiting.pop_front();
  taken.saved -= request.cost;
  taken.served = now;
  --size_;
  keys_.push_back(std::move(taken));  // moves to the end: now it is the others' turn
  return request;
}

std::vector<Waiting> FairQueue::drop(Clock::time_point now) {
  std::vector<Waiting> dropped;
  for (Key& one : keys_) {
    const auto gone = std::stable_partition(
        one.waiting.begin(), one.waiting.end(),
        [now](const Waiting& request) { return !request.cancel.cancelled() && request.deadline > now; });
    std::move(gone, one.waiting.end(), std::back_inserter(dropped));
    one.waiting.erase(gone, one.waiting.end());
  }
  size_ -= dropped.size();
  forget_empty();
  return dropped;
}

// A key with nothing to run saves no tokens.
void FairQueue::forget_empty() {
  std::erase_if(keys_, [](const Key& one) { return one.waiting.empty(); });
}

}  // namespace sluice::scheduler
