// One thread that runs jobs in the order of their arrival.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>

#include "base/function_ref.h"

namespace sluice::engine {

class JobThread {
  struct Job;

 public:
  JobThread();
  // Runs the remaining jobs first.
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  // Runs `job` on the thread and waits: returns what it returns, throws what it throws. May be called from
  // any thread; a job that calls it runs the other job at once.
  template <class F>
  std::invoke_result_t<F&> run(F&& job) {
    using Result = std::invoke_result_t<F&>;
    if constexpr (std::is_void_v<Result>) {
      wait_for([&] { job(); });
    } else {
      std::optional<Result> result;
      wait_for([&] { result.emplace(job()); });
      return std::move(*result);
    }
  }

  // Queues a job that nobody waits for and that must not throw.
  void post(std::function<void()> job);

  // A job that runs while its owner continues. The destructor waits for it.
  class Started;

 private:
  struct Job {
    FunctionRef<void()> body;
    std::condition_variable finished = {};
    bool done = false;
    std::exception_ptr error = nullptr;
  };
  void push(Job& job);
  void finish(Job& job);
  void wait(Job& job);
  void wait_for(FunctionRef<void()> body);
  void work();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;  // last, because it uses the others
};

// Not for use by the thread's own jobs.
class JobThread::Started {
 public:
  Started(JobThread& thread, std::function<void()> body)
      : thread_(thread), body_(std::move(body)), job_{body_} {
    thread_.push(job_);
  }
  ~Started() { thread_.wait(job_); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  // Throws what the job threw.
  void wait() {
    thread_.wait(job_);
    if (job_.error) std::rethrow_exception(job_.error);
  }

 private:
  JobThread& thread_;
  std::function<void()> body_;
  Job job_;
};

}  // namespace sluice::engine
