// The resources that a template may use: templates come with checkpoints from strangers, so every loop and
// allocation is counted.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace sluice::jinja {

// A template that cannot be parsed or rendered; ChatTemplate adds the line and turns it into sluice::Error.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fault_formatted(fmt::string_view format, fmt::format_args args);

template <class... Args>
[[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) {
  fault_formatted(format, fmt::make_format_args(args...));
}

// Containers, JSON inputs and syntax nest at most this deeply, which limits every recursion over them.
inline constexpr int kMaxNesting = 200;

struct Limits {
  std::size_t output_bytes = std::size_t{16} << 20;  // of the rendered text and of any single string
  std::size_t memory_bytes = std::size_t{1} << 30;   // allocated by one render in total, freed or not
  std::uint64_t steps = 10'000'000;                  // expressions, iterations and comparisons
  int depth = 1000;                                  // nested evaluations: limits recursive macros
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }

  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) fault("the template takes more than {} steps", limits_.steps);
  }

  // Counts a string or container before it is allocated.
  void grow(std::size_t bytes) {
    made_ += bytes;
    if (bytes > limits_.output_bytes)
      fault("the template makes a value of {} bytes; {} are allowed", bytes, limits_.output_bytes);
    if (made_ > limits_.memory_bytes) fault("the template makes more than {} bytes", limits_.memory_bytes);
    step(bytes / 1024);
  }

  void enter() {
    if (++depth_ > limits_.depth) fault("the template recurses deeper than {} levels", limits_.depth);
  }
  void leave() { --depth_; }

 private:
  Limits limits_;
  std::uint64_t steps_ = 0;
  std::size_t made_ = 0;
  int depth_ = 0;
};

class DepthGuard {
 public:
  explicit DepthGuard(Budget& budget) : budget_(budget) { budget_.enter(); }
  ~DepthGuard() { budget_.leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Budget& budget_;
};

}  // namespace sluice::jinja
