// Requests that wait to run, and which of them is next.
//
// Between keys (clients) tokens are shared by deficit round robin: a key whose turn it is may spend a quantum
// of tokens more, and its next request runs once the key has saved up what it costs. So a client with long
// prompts or many requests gets the same share of tokens as one with few. Priorities come before that, and
// waiting raises them: a key whose next request has waited for `ageing` seconds since the key was last served
// counts one priority higher, after twice that time two. So nobody starves, and nobody gains by flooding the
// queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scheduler/cancel.h"

namespace sluice::scheduler {

struct Waiting {
  std::uint64_t id = 0;  // chosen by the caller
  std::string key;
  int priority = 0;       // higher ones first
  std::int64_t cost = 0;  // tokens
  Clock::time_point arrived;
  Clock::time_point deadline = Clock::time_point::max();
  Cancel cancel = {};
};

struct FairQueueOptions {
  std::size_t capacity = 1024;
  std::int64_t quantum = 1024;  // tokens
  std::chrono::duration<double> ageing{10};
};

// For one thread at a time.
class FairQueue {
 public:
  explicit FairQueue(const FairQueueOptions& options);

  // Throws with kind `busy` if the queue is full.
  void push(Waiting request);
  // Puts a request that could not run back in its old place; it fits even if the queue is full, and its key
  // gets back what it spent.
  void put_back(Waiting request);

  // The next one to run, unless it costs more than `most` tokens: then nobody overtakes it.
  std::optional<Waiting> pop(Clock::time_point now, std::int64_t most);
  // Removes requests that were cancelled or are past their deadline.
  std::vector<Waiting> drop(Clock::time_point now);

  std::size_t size() const { return size_; }

 private:
  struct Key {
    std::string name;
    std::int64_t saved = 0;  // tokens it may spend
    Clock::time_point served = Clock::time_point::min();
    std::deque<Waiting> waiting;  // in the order in which they run
  };

  Key& key(const std::string& name);
  void insert(Key& key, Waiting request);
  std::int64_t level(const Key& key, Clock::time_point now) const;
  // The key whose next request runs next, and the rounds for which every candidate saves until then.
  std::size_t choose(Clock::time_point now, std::int64_t& rounds) const;
  void forget_empty();

  FairQueueOptions options_;
  std::deque<Key> keys_;  // the one whose turn it is first
  std::size_t size_ = 0;
};

}  // namespace sluice::scheduler
