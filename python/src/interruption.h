// Ctrl-C, or any other exception of a signal handler, during a computation without the interpreter's lock.
#pragma once

#include <chrono>
#include <exception>
#include <utility>

#include "unlocked.h"

namespace sluice::python {

// Ends a computation from within one of its callbacks; the Python exception is then set.
struct Interrupted : std::exception {};

// A check takes the interpreter's lock, so it is done a few times per second at most. Handlers run only in
// the main thread: in other threads nothing is ever raised.
class Interruption {
 public:
  bool raised() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kPause) return false;
    looked_ = now;
    const Locked locked;
    return raised_ = !locked || PyErr_CheckSignals() != 0;
  }
  void check() {
    if (raised()) throw Interrupted();
  }
  // An exception of a callback ends the computation as well.
  void restore(nb::python_error& error) {
    error.restore();
    raised_ = true;
  }

 private:
  static constexpr std::chrono::milliseconds kPause{20};
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  bool raised_ = false;
};

// Runs f(interruption) without the interpreter's lock.
template <class F>
auto interruptible(F&& f) {
  Interruption interruption;
  try {
    const Unlocked unlocked;
    return std::forward<F>(f)(interruption);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

}  // namespace sluice::python
