// Pending callbacks. They run only once the device has its next work, so they take none of its
// time.
#pragma once

#include <variant>

#include "scheduler/sequence.h"

namespace sluice::scheduler {

class Outbox {
 public:
  void progress(const SequencePtr& sequence) {
    events_.push_back({sequence, Read{sequence->past, sequence->prompt}});
  }
  void token(const SequencePtr& sequence, GeneratedToken token) {
    events_.push_back({sequence, std::move(token)});
  }
  void done(const SequencePtr& sequence, RequestResult result) {
    events_.push_back({sequence, std::move(result)});
  }

  // Calls the callbacks in the order of events; returns the number of finished requests. An exception from a
  // callback ends its request.
  std::int64_t deliver();

 private:
  struct Read {
    std::int64_t read = 0;
    std::int64_t all = 0;
  };
  struct Event {
    SequencePtr sequence;
    std::variant<Read, GeneratedToken, RequestResult> what;
  };
  static void call(const Event& event);

  std::vector<Event> events_;
};

}  // namespace sluice::scheduler
