// The interpreter's lock, let go of while something is computed and taken again. CPython ends a thread that
// asks for it once the interpreter ends: in the middle of C++, which aborts the program. Threads that Python
// does not wait for (daemons) get as far as that, so that from then on they rest here until the process is
// gone.
#pragma once

#include <optional>

#include "bindings.h"

namespace sluice::python {

// Whether the interpreter ends, and this is not the thread that ends it.
bool interpreter_ends() noexcept;
void watch_interpreter();

// Lets go of the lock; takes it again at the end of its scope.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the lock, unless the interpreter ends: then nothing of Python may be touched.
class Locked {
 public:
  Locked();
  explicit operator bool() const { return held_.has_value(); }

 private:
  std::optional<nb::gil_scoped_acquire> held_;
};

}  // namespace sluice::python
