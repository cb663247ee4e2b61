// Counters for /metrics, in the text format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/scheduler.h"

namespace sluice::server::local {

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void observe(double value);
  std::string text(std::string_view name, std::string_view help) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

class Metrics {
 public:
  // Seconds between tokens of one sequence; with `first`, the first is the time to the first token.
  void observe(std::span<const double> intervals, bool first);
  void count_request(int status);
  void connections(std::size_t open);

  // Includes the scheduler's counters, if there is one.
  std::string text(const Scheduler* scheduler) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::uint64_t> requests_;
  std::size_t connections_ = 0;
  Histogram first_token_{{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}};
  Histogram interval_{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5}};
};

}  // namespace sluice::server::local
