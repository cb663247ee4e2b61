// The process that something was made in. Threads do not survive a fork, and locks may be held by them for
// ever: in a child nothing is computed with what its parent made, and nothing of it is taken down.
#pragma once

#include <memory>

namespace sluice::python {

class Home {
 public:
  Home();
  bool here() const;
  // What to do instead, as an error of the caller's.
  void check(const char* what) const;

 private:
  unsigned forks_;
};

// Before anything that forgets its home: see module.cpp.
void watch_forks();

// Shared as before, and left alone in children.
template <class T>
std::shared_ptr<T> kept_at_home(std::shared_ptr<T> made) {
  T* const raw = made.get();
  auto held = std::make_unique<std::shared_ptr<T>>(std::move(made));
  return {raw, [home = Home(), held = held.release()](T*) {
            if (home.here()) delete held;
          }};
}

}  // namespace sluice::python
