// Reads by threads that block in pread.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/integer_cast.h"
#include "experts/reader.h"

namespace sluice::experts {

namespace {

constexpr int kThreads = 8;

std::int64_t read_all(int descriptor, const Request& request) {
  std::size_t got = 0;
  while (got < request.bytes) {
    const ssize_t count = ::pread(descriptor, request.to + got, request.bytes - got, request.offset + got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -errno;
    if (count == 0) break;
    got += to_size(count);
  }
  return got;
}

class ThreadReader final : public Reader {
 public:
  ThreadReader(OpenFiles files, std::string reason) : files_(std::move(files)), reason_(std::move(reason)) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadReader() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    asked_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::string description() const override {
    return fmt::format("{} threads with pread ({})", kThreads, reason_);
  }

  void start(std::span<const Request> requests) override {
    {
      const std::lock_guard lock(mutex_);
      requests_.insert(requests_.end(), requests.begin(), requests.end());
    }
    asked_.notify_all();
  }

  Completion wait() override {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return !completions_.empty(); });
    Completion first = std::move(completions_.front());
    completions_.pop_front();
    return first;
  }
  bool ready() override {
    const std::lock_guard lock(mutex_);
    return !completions_.empty();
  }

  bool unchanged(int file) const override { return files_[file].unchanged(); }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
      if (requests_.empty()) return;
      const Request request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      const int descriptor = files_[request.file].descriptor.get();
      std::string error = read_error(request, read_all(descriptor, request));
      lock.lock();
      completions_.push_back({request.tag, std::move(error)});
      answered_.notify_one();
    }
  }

  OpenFiles files_;
  std::string reason_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable answered_;
  std::deque<Request> requests_;
  std::deque<Completion> completions_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Reader> make_thread_reader(OpenFiles files, std::string reason) {
  return std::make_unique<ThreadReader>(std::move(files), std::move(reason));
}

}  // namespace sluice::experts
