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

void JobThread::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  arrived_.notify_one();
}

void JobThread::push(Job& job) {
  post([this, &job] { finish(job); });
}

void JobThread::finish(Job& job) {
  std::exception_ptr error;
  try {
    job.body();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  job.error = std::move(error);
  job.done = true;
  job.finished.notify_one();  // under the lock, because the job is destroyed as soon as its owner wakes
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
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

}  // namespace sluice::engine
