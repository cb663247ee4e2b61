// Simulated nodes: threads of the test, connected by queues.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "nodes/cluster.h"
#include "sluice/error.h"

namespace sluice::nodes {

// The messages in flight between them.
class Hub {
 public:
  explicit Hub(int nodes) : nodes_(nodes) {}

  int nodes() const { return nodes_; }
  // From now on nothing arrives from that node, as if it were stopped or its cable were pulled.
  void silence(int rank) {
    const std::lock_guard lock(mutex_);
    silent_ = rank;
  }
  void put(int from, int to, Channel channel, Message message) {
    const std::lock_guard lock(mutex_);
    if (from == 0 && channel == Channel::rows)
      seen_.most_underway = std::max(seen_.most_underway, ++underway_);
    if (from == 0 && channel == Channel::commands) ++seen_.commands;
    if (from != silent_) queues_[{from, to, channel}].push_back(std::move(message));
  }
  std::optional<Message> take(int from, int to, Channel channel) {
    const std::lock_guard lock(mutex_);
    std::deque<Message>& queue = queues_[{from, to, channel}];
    if (queue.empty()) return std::nullopt;
    std::optional<Message> first = std::move(queue.front());
    queue.pop_front();
    if (to == 0 && channel == Channel::rows) --underway_;
    return first;
  }
  // Statistics of the leading node's messages.
  struct Seen {
    int most_underway = 0;  // the most passes in flight at the same time
    int commands = 0;       // messages
  };
  Seen seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  int nodes_;
  mutable std::mutex mutex_;
  int silent_ = -1;
  int underway_ = 0;
  Seen seen_;
  std::map<std::tuple<int, int, Channel>, std::deque<Message>> queues_;
};

class LocalTransport : public Transport {
 public:
  LocalTransport(Hub& hub, int rank) : hub_(hub), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return hub_.nodes(); }
  std::string host() const override { return "machine" + std::to_string(rank_); }
  void send(int to, Channel channel, Message message) override {
    hub_.put(rank_, to, channel, std::move(message));
  }
  std::optional<Message> poll(int from, Channel channel) override { return hub_.take(from, rank_, channel); }
  bool arriving(int, Channel) override { return false; }
  std::size_t progress() override { return 0; }
  void close() override {}

 private:
  Hub& hub_;
  int rank_;
};

// Calls f(rank) on a thread for each rank, that of rank 0 on the caller's. Rethrows an exception, that of the
// lowest rank first.
template <class F>
void on_each_node(int nodes, F&& f) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(nodes));
  const auto run = [&](int rank) {
    try {
      f(rank);
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < nodes; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace sluice::nodes
