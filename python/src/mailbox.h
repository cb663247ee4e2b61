// Where a scheduler leaves what it has to say until Python comes for it. Leaving something never waits for
// the interpreter's lock, so that no Python code can slow the scheduler down.
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
  std::uint64_t ticket = 0;  // of the request, chosen by whoever asked
  std::variant<PromptProgress, GeneratedToken, RequestResult> news;
};

// Held by shared pointers of its own, not by Python's references, which cannot be let go of without that
// lock.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox() = default;
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  void leave(Letter letter);
  std::vector<Letter> take();
  // Whether there is something, at the latest after that time.
  bool wait(std::chrono::milliseconds longest);
  // A file that can be read while there is something: event loops wait for those.
  int file();

  const Home home;

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<Letter> letters_;
  int file_ = -1;
};

}  // namespace sluice::python
