// The pool of threads that computes; it is passed in, never global.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace sluice {

// A decode step dispatches hundreds of jobs of a few microseconds each, so workers spin for a short, bounded
// time before they sleep; an idle pool uses no processor time. Calls from several threads take turns. A task
// may call parallel_for on its own pool: it then runs serially, in place. The first exception a task throws
// is rethrown to the caller once every worker has finished.
class ThreadPool {
 public:
  using Task = FunctionRef<void(int worker)>;
  using RangeTask = FunctionRef<void(int64_t begin, int64_t end, int worker)>;

  // `threads` counts the calling thread, which is worker 0: a pool of 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls task(worker) once for each worker in [0, size()), concurrently. Not from inside a task.
  void run(Task task);

  // Divides [begin, end) into one contiguous range per worker; boundaries are at multiples of `grain` from
  // begin. The division depends only on the range, the grain and size().
  void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeTask task);

  // The same for work of uneven cost: a worker processes its range in order, `grain` at a time, and then
  // takes from ranges that others have not finished.
  void parallel_for_dynamic(int64_t begin, int64_t end, int64_t grain, RangeTask task);

 private:
  class Turn;
  struct alignas(64) Share;  // for dynamic loops: a worker's chunks that are not started

  int current_worker() const;
  void dispatch(Task task);
  void invoke(int worker) noexcept;
  void work(int worker);
  void stop();

  std::vector<std::thread> threads_;  // worker w is threads_[w - 1]
  std::unique_ptr<Share[]> shares_;   // one for each worker

  std::mutex turn_;                                         // held by the caller whose job runs
  std::atomic<std::thread::id> caller_{std::thread::id()};  // that caller

  const Task* task_ = nullptr;        // published by job_, valid until running_ is 0
  std::atomic<uint32_t> job_{0};      // a change wakes the workers
  std::atomic<uint32_t> running_{0};  // workers that have not finished the job
  std::atomic<bool> failed_{false};   // claimed by the first task to throw
  std::exception_ptr error_;
  bool stopping_ = false;  // published by job_
};

}  // namespace sluice
