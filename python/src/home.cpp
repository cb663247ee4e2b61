#include "home.h"

#include <pthread.h>

#include <atomic>
#include <string>

#include "bindings.h"
#include "sluice/error.h"

namespace sluice::python {

namespace {

std::atomic<unsigned> forks{0};  // number of forks between the first process and this one

void count_fork() {
  forks.fetch_add(1, std::memory_order_relaxed);
  nb::set_leak_warnings(false);  // objects of the parent process are not destroyed here
}

}  // namespace

Home::Home() : forks_(forks.load(std::memory_order_relaxed)) {}

bool Home::here() const {
  return forks_ == forks.load(std::memory_order_relaxed);
}

void Home::check(const char* what) const {
  if (!here())
    throw Error(ErrorKind::input, std::string("the ") + what +
                                      " was made before this process was forked: make another one here, or "
                                      "start processes with the method spawn");
}

void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, &count_fork);
  static_cast<void>(once);
}

}  // namespace sluice::python
