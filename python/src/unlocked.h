// Releases the interpreter's lock during computations and takes it again. Once the interpreter ends, CPython
// terminates threads that request the lock: in the middle of C++ code this aborts the program. Threads that
// Python does not wait for (daemons) can get there, so they block here until the process ends.
#pragma once

#include <optional>

#include "bindings.h"

namespace sluice::python {

// Whether the interpreter is ending, and this is not the thread that ends it.
bool interpreter_ends() noexcept;
void watch_interpreter();

// Releases the lock, and takes it again at the end of its scope.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the lock, unless the interpreter is ending: then Python objects must not be touched.
class Locked {
 public:
  Locked();
  explicit operator bool() const { return held_.has_value(); }

 private:
  std::optional<nb::gil_scoped_acquire> held_;
};

}  // namespace sluice::python
