// Limits the time for compiling a grammar, or for one mask or token.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace sluice::grammar {

class StepClock {
 public:
  StepClock(std::chrono::milliseconds limit, std::string_view purpose) : limit_(limit), purpose_(purpose) {
    start();
  }

  void start() { started_ = Clock::now(); }
  // Called throughout, with the work done since the last call in steps of well under a microsecond; checks
  // the time now and then.
  void poll(std::size_t steps = 1) {
    constexpr std::size_t kStepsPerLook = 512;
    steps_ += steps;
    if (steps_ < kStepsPerLook) return;
    steps_ = 0;
    look();
  }
  void look() const {
    if (Clock::now() - started_ > limit_)
      fail(ErrorKind::resource, "the grammar takes more than {} ms {}", limit_.count(), purpose_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds limit_;
  std::string_view purpose_;
  Clock::time_point started_;
  std::size_t steps_ = 0;
};

}  // namespace sluice::grammar
