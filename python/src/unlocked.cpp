#include "unlocked.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace sluice::python {

namespace {

std::atomic<bool> ends{false};
std::thread::id ended_by;      // set before `ends`
std::atomic<int> entering{0};  // threads that have found the interpreter alive but do not have the lock yet

// Counted before checking whether the interpreter ends, so that the thread that ends it knows of everyone who
// continues.
class Entering {
 public:
  Entering() { entering.fetch_add(1); }
  ~Entering() { entering.fetch_sub(1); }
  Entering(const Entering&) = delete;
  Entering& operator=(const Entering&) = delete;
};

[[noreturn]] void rest() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Called by the thread that ends the interpreter, before it does. Threads that are about to take the lock
// still may.
void end() {
  // Objects held by threads that continue are not leaks.
  if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) > 1)
    nb::set_leak_warnings(false);
  ended_by = std::this_thread::get_id();
  ends.store(true);
  const nb::gil_scoped_release release;
  constexpr int kPatience = 1000;  // ms
  for (int waited = 0; entering.load() > 0 && waited < kPatience; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void forget_threads() {
  entering.store(0);  // those of the parent process do not exist here
}

}  // namespace

bool interpreter_ends() noexcept {
  return ends.load() && ended_by != std::this_thread::get_id();
}

void watch_interpreter() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end));
  static const int once = pthread_atfork(nullptr, nullptr, &forget_threads);
  static_cast<void>(once);
}

Unlocked::~Unlocked() {
  {
    const Entering entering;
    if (!interpreter_ends()) {
      PyEval_RestoreThread(state_);
      return;
    }
  }
  rest();
}

Locked::Locked() {
  const Entering entering;
  if (!interpreter_ends()) held_.emplace();
}

}  // namespace sluice::python
