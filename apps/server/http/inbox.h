// What the scheduler says of a request's sequences, carried over to the thread that writes to clients.
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

// What came for one sequence since it was looked at last. A client that reads slowly finds more of it at
// once.
struct News {
  std::vector<GeneratedToken> tokens;
  std::vector<double> intervals;  // seconds between tokens; the first one is since the request came
  bool first = false;             // whether the first of them is the sequence's first
  std::optional<RequestResult> result;
};

struct PromptProgress {
  std::int64_t read = 0, all = 0;
  std::int64_t cached = 0;  // read before anything was computed
};

class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  // `most` bytes may wait for one client; what is beyond ends its request.
  Inbox(boost::asio::any_io_executor executor, std::size_t sequences, std::size_t most);

  // For the sequence of that number; each callback keeps the inbox alive.
  RequestCallbacks callbacks(std::size_t sequence);

  // The rest is for the executor's thread. Waits until there is news, or as long as that.
  boost::asio::awaitable<void> wait(std::chrono::milliseconds longest);
  std::vector<News> take();
  // Of the sequence that was heard of last; nothing before the first chunk.
  std::optional<PromptProgress> progress() const;
  bool overflowed() const;

 private:
  using Clock = std::chrono::steady_clock;

  void token(std::size_t sequence, const GeneratedToken& token);
  void done(std::size_t sequence, const RequestResult& result);
  void read(std::int64_t tokens, std::int64_t all);
  void wake();  // with the lock held

  boost::asio::any_io_executor executor_;
  // Of whoever waits, on the executor's thread alone. Not a member: callbacks may outlive the executor.
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
