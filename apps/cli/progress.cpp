#include "progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace sluice::cli {

namespace {
constexpr int kWidth = 32;
}

Progress::Progress(std::string label)
    : label_(std::move(label)),
      start_(std::chrono::steady_clock::now()),
      shown_(start_),
      terminal_(isatty(2) != 0) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || total == 0 || now - start_ < 1s || now - shown_ < 100ms) return;
  shown_ = now;
  drawn_ = true;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const int filled = static_cast<int>(part * kWidth);
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3.0f}%  {:.0f} s left ", label_, "", filled, "",
             kWidth - filled, part * 100, part > 0 ? elapsed / part - elapsed : 0.0);
  std::fflush(stderr);
}

}  // namespace sluice::cli
