// A progress line on stderr for anything that takes over a second; nothing if stderr is not a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::cli::terminal {

// A progress bar, for work of known length.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `detail` is the current item.
  void update(std::uint64_t done, std::uint64_t total, const std::string& detail = {});

 private:
  std::string label_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
  bool terminal_;
  bool drawn_ = false;
};

// The elapsed seconds, for work of unknown length.
class Waiting {
 public:
  explicit Waiting(std::string label);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void draw();

  std::string label_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace sluice::cli::terminal
