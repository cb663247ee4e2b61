// Work that other threads delegate to the loop's thread, between two turns.
#include <algorithm>

#include "scheduler/loop.h"

namespace sluice::scheduler {

void Loop::forget_prompts() {
  run_on_loop([this] {
    places_.forget_all();
    count_pages();
    publish();
  });
}

std::vector<RememberedPrefix> Loop::remembered(const prefix::Salt& salt, std::size_t most) {
  std::vector<RememberedPrefix> found;
  run_on_loop([&] { found = places_.remembered(salt, most); });
  return found;
}

void Loop::run_on_loop(const std::function<void()>& job) {
  std::unique_lock lock(mutex_);
  if (done_) return;
  jobs_.push_back(&job);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ || std::find(jobs_.begin(), jobs_.end(), &job) == jobs_.end(); });
}

void Loop::run_jobs() {
  std::vector<const std::function<void()>*> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs = jobs_;
  }
  if (jobs.empty()) return;
  std::exception_ptr error;
  for (const std::function<void()>* job : jobs) try {
      (*job)();
    } catch (...) {
      error = std::current_exception();
    }
  {
    const std::lock_guard lock(mutex_);
    jobs_.erase(jobs_.begin(), jobs_.begin() + std::ssize(jobs));
    changed_.notify_all();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace sluice::scheduler
