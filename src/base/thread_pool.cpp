#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kMaxThreads = 4096;
// Longer than the gap between two jobs of a decode step, and too short to matter for power consumption.
constexpr auto kSpin = std::chrono::microseconds(40);
constexpr int kPausesPerClockRead = 16;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until the value differs from `old` and returns it: spins for kSpin, then sleeps.
uint32_t await_change(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      const uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

// [begin, end) in chunks of `grain`; the last may be shorter.
struct Chunks {
  int64_t begin, end, grain, count;

  Chunks(int64_t begin_, int64_t end_, int64_t grain_) : begin(begin_), end(end_), grain(grain_), count(0) {
    if (grain < 1) fail(ErrorKind::internal, "a parallel loop has grain {}, expected at least 1", grain);
    if (begin < end) count = (end - begin - 1) / grain + 1;
  }
  int64_t border(int64_t chunk) const { return chunk >= count ? end : begin + chunk * grain; }
  // The first `count % workers` workers have one chunk more than the others.
  int64_t first_of(int worker, int workers) const {
    return worker * (count / workers) + std::min<int64_t>(worker, count % workers);
  }
};

}  // namespace

struct alignas(64) ThreadPool::Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

// One caller's exclusive use of the pool.
class ThreadPool::Turn {
 public:
  explicit Turn(ThreadPool& pool) : pool_(pool), lock_(pool.turn_) {
    pool_.caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  ~Turn() { pool_.caller_.store(std::thread::id(), std::memory_order_relaxed); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ThreadPool& pool_;
  std::lock_guard<std::mutex> lock_;
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    fail(ErrorKind::input, "{} threads were requested for a thread pool, expected 1 to {}", threads,
         kMaxThreads);
  }
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(threads));
  // Reserved so that current_worker() never meets a vector that moves; a worker looks only once it has a job.
  threads_.reserve(threads - 1);
  try {
    for (int worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& error) {
    const int started = size();
    stop();
    fail(ErrorKind::resource, "the system refused thread {} of {}: {}", started + 1, threads, error.what());
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_ = true;
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::work(int worker) {
  for (uint32_t job = 0;;) {
    job = await_change(job_, job);
    if (stopping_) return;
    invoke(worker);
    if (running_.fetch_sub(1) == 1) running_.notify_one();
  }
}

void ThreadPool::invoke(int worker) noexcept {
  try {
    (*task_)(worker);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

// The worker that this thread is while it runs a task of this pool, or -1.
int ThreadPool::current_worker() const {
  const std::thread::id self = std::this_thread::get_id();
  if (caller_.load(std::memory_order_relaxed) == self) return 0;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].get_id() == self) return static_cast<int>(i) + 1;
  }
  return -1;
}

void ThreadPool::dispatch(Task task) {
  task_ = &task;
  running_.store(static_cast<uint32_t>(threads_.size()));
  // Sequentially consistent: a worker about to sleep sees either the new job or the wake-up call.
  job_.fetch_add(1);
  job_.notify_all();
  invoke(0);
  for (uint32_t left = running_.load(std::memory_order_acquire); left != 0;)
    left = await_change(running_, left);
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::run(Task task) {
  if (current_worker() >= 0)
    fail(ErrorKind::internal, "ThreadPool::run was called inside a task of the same pool");
  const Turn turn(*this);
  dispatch(task);
}

void ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, RangeTask task) {
  const Chunks chunks(begin, end, grain);
  if (chunks.count == 0) return;
  if (const int worker = current_worker(); worker >= 0) return task(begin, end, worker);
  const Turn turn(*this);
  if (chunks.count == 1 || size() == 1) return task(begin, end, 0);
  dispatch([&](int worker) {
    const int64_t first = chunks.first_of(worker, size());
    const int64_t last = chunks.first_of(worker + 1, size());
    if (first < last) task(chunks.border(first), chunks.border(last), worker);
  });
}

void ThreadPool::parallel_for_dynamic(int64_t begin, int64_t end, int64_t grain, RangeTask task) {
  const Chunks chunks(begin, end, grain);
  if (chunks.count == 0) return;
  if (const int worker = current_worker(); worker >= 0) return task(begin, end, worker);
  const Turn turn(*this);
  if (chunks.count == 1 || size() == 1) return task(begin, end, 0);
  for (int worker = 0; worker < size(); ++worker) {
    shares_[worker].next.store(chunks.first_of(worker, size()), std::memory_order_relaxed);
    shares_[worker].end = chunks.first_of(worker + 1, size());
  }
  std::atomic<bool> given_up{false};  // avoids starting work whose result would be discarded
  dispatch([&](int worker) {
    try {
      for (int i = 0; i < size(); ++i) {
        Share& share = shares_[(worker + i) % size()];
        for (int64_t chunk = 0; !given_up.load(std::memory_order_relaxed) &&
                                (chunk = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
          task(chunks.border(chunk), chunks.border(chunk + 1), worker);
      }
    } catch (...) {
      given_up.store(true, std::memory_order_relaxed);
      throw;
    }
  });
}

}  // namespace sluice
