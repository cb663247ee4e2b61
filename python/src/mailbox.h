// Where a scheduler leaves messages for Python to fetch. Leaving one never waits for the interpreter's lock,
// so that no Python code can slow the scheduler down.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "home.h"
#include "sluice/scheduler.h"

namespace sluice::python {

struct PromptProgress {
  std::int64_t read = 0;
  std::int64_t all = 0;
};

struct Letter {
  std::uint64_t ticket = 0;  // identifies the request, chosen by its sender
  std::variant<PromptProgress, GeneratedToken, RequestResult> news;
};

// Owned by C++ shared pointers, not Python references, which cannot be released without that lock.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox() = default;
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void leave(Letter letter);
  std::vector<Letter> take();
  // Returns whether there is a message, at the latest after that time.
  bool wait(std::chrono::milliseconds longest);
  // A file descriptor that is readable while there are messages, for event loops.
  int file();

  const Home home;

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<Letter> letters_;
  int file_ = -1;
};

}  // namespace sluice::python
