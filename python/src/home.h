// The process in which an object was created. Threads do not survive a fork, and locks may stay locked
// forever: a child process neither computes with its parent's objects nor destroys them.
#pragma once

#include <memory>

namespace sluice::python {

class Home {
 public:
  Home();
  bool here() const;
  // Throws an error of the caller's if this is another process, and says what to do instead.
  void check(const char* what) const;

 private:
  unsigned forks_;
};

// Call before anything that depends on homes: see module.cpp.
void watch_forks();

// A shared pointer whose object is not destroyed in child processes.
template <class T>
std::shared_ptr<T> kept_at_home(std::shared_ptr<T> made) {
  T* const raw = made.get();
  auto held = std::make_unique<std::shared_ptr<T>>(std::move(made));
  return {raw, [home = Home(), held = held.release()](T*) {
            if (home.here()) delete held;
          }};
}

}  // namespace sluice::python
