#include "terminal/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "terminal/terminal.h"

namespace sluice::cli::terminal {

namespace {

constexpr int kWidth = 32;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Progress::Progress(std::string label)
    : label_(std::move(label)),
      start_(std::chrono::steady_clock::now()),
      shown_(start_),
      terminal_(is_terminal(stderr)) {}

Progress::~Progress() {
  if (drawn_) std::fputs(kClearLine, stderr);
}

void Progress::update(std::uint64_t done, std::uint64_t total, const std::string& detail) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || total == 0 || now - start_ < 1s || now - shown_ < 100ms) return;
  shown_ = now;
  drawn_ = true;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const int filled = static_cast<int>(part * kWidth);
  std::string line =
      fmt::format("{} [{:#<{}}{:.<{}}] {:3.0f}%  {:.0f} s left  {}", label_, "", filled, "", kWidth - filled,
                  part * 100, part > 0 ? elapsed / part - elapsed : 0.0, printable(detail));
  // A wrapped line could not be overwritten.
  line.resize(std::min(line.size(), static_cast<std::size_t>(width(stderr)) - 1));
  fmt::print(stderr, "{}{}", kClearLine, line);
  std::fflush(stderr);
}

Waiting::Waiting(std::string label) : label_(std::move(label)) {
  if (is_terminal(stderr)) thread_ = std::thread([this] { draw(); });
}

Waiting::~Waiting() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Waiting::draw() {
  bool drawn = false;
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !ended_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; });
       ++seconds) {
    fmt::print(stderr, "{}{} ({} s)", kClearLine, label_, seconds);
    std::fflush(stderr);
    drawn = true;
  }
  if (drawn) std::fputs(kClearLine, stderr);
}

}  // namespace sluice::cli::terminal
