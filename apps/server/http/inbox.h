// Passes the scheduler's events about a request's sequences to the thread that writes to clients.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/scheduler.h"

namespace sluice::server::http {

// What arrived for one sequence since the last take(). A client that reads slowly gets more at once.
struct News {
  std::vector<GeneratedToken> tokens;
  std::vector<double> intervals;  // seconds between tokens; the first is since the request arrived
  bool first = false;             // whether the first of them is the sequence's first
  std::optional<RequestResult> result;
};

struct PromptProgress {
  std::int64_t read = 0, all = 0;
  std::int64_t cached = 0;  // tokens that were cached before anything was computed
};

class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  // At most `most` bytes may wait for one client; more end its request.
  Inbox(boost::asio::any_io_executor executor, std::size_t sequences, std::size_t most);

  // Callbacks for that sequence; each keeps the inbox alive.
  RequestCallbacks callbacks(std::size_t sequence);

  // The rest is for the executor's thread. Waits for news, up to the time limit.
  boost::asio::awaitable<void> wait(std::chrono::milliseconds longest);
  std::vector<News> take();
  // Of the sequence that reported last; nothing before the first chunk.
  std::optional<PromptProgress> progress() const;
  bool overflowed() const;

 private:
  using Clock = std::chrono::steady_clock;

  void token(std::size_t sequence, const GeneratedToken& token);
  void done(std::size_t sequence, const RequestResult& result);
  void read(std::int64_t tokens, std::int64_t all);
  void wake();  // called with the lock held

  boost::asio::any_io_executor executor_;
  // The waiting coroutine's, on the executor's thread only. Not a member: callbacks may outlive the executor.
  boost::asio::steady_timer* timer_ = nullptr;
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::vector<News> news_;
  std::vector<Clock::time_point> last_;
  std::vector<bool> begun_;
  std::optional<PromptProgress> progress_;
  std::size_t bytes_ = 0;
  bool fresh_ = false, waiting_ = false;
};

}  // namespace sluice::server::http
