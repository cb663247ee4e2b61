// The time that one mask or one token may take.
#pragma once

#include <chrono>

#include "base/error.h"

namespace sluice::grammar {

class StepClock {
 public:
  explicit StepClock(std::chrono::milliseconds limit) : limit_(limit) { start(); }

  void start() { started_ = Clock::now(); }
  // Called all along; looks at the time now and then.
  void poll() {
    constexpr unsigned kPollsPerLook = 512;
    if (++polls_ % kPollsPerLook == 0 && Clock::now() - started_ > limit_)
      fail(ErrorKind::resource, "the grammar takes more than {} ms for one token", limit_.count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds limit_;
  Clock::time_point started_;
  unsigned polls_ = 0;
};

}  // namespace sluice::grammar
