#include "engine/job_thread.h"

namespace sluice::engine {

JobThread::JobThread() : thread_([this] { work(); }) {}

JobThread::~JobThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void JobThread::push(Job& job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(&job);
  arrived_.notify_one();
}

void JobThread::wait(Job& job) {
  std::unique_lock lock(mutex_);
  job.finished.wait(lock, [&] { return job.done; });
}

void JobThread::wait_for(FunctionRef<void()> body) {
  if (std::this_thread::get_id() == thread_.get_id()) return body();
  Job job{body};
  push(job);
  wait(job);
  if (job.error) std::rethrow_exception(job.error);
}

void JobThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job& job = *jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job.body();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    job.error = std::move(error);
    job.done = true;
    job.finished.notify_one();  // under the lock: the job goes as soon as its owner wakes
  }
}

}  // namespace sluice::engine
