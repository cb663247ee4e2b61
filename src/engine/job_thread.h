// One thread that does jobs in the order of their arrival.
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
  // After the jobs that were asked for.
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  // Calls `job` on the thread and waits: returns what it returns, throws what it throws. From any thread; a
  // job that asks for another one does it at once.
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

  // Has a job done that nobody waits for. It throws nothing.
  void post(std::function<void()> job);

  // A job that is done while its owner goes on. It is waited for before it goes.
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
  std::thread thread_;  // last: it uses the others
};

// Not from the thread's own jobs.
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
