#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/machine_peak.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/find_op.h"
#include "sluice/op_runner.h"

namespace sluice {

namespace runner {

namespace {

using Clock = std::chrono::steady_clock;

// Copies of a case's operands to rotate through, so that together they exceed the caches as weights and
// states do when a model runs. Cases that are large by themselves need one.
constexpr double kRotationBytes = 768e6;
constexpr std::size_t kMaxCopies = 64;

double median_seconds(std::vector<std::unique_ptr<BoundOp>>& copies, double budget) {
  std::vector<double> times;
  for (auto& copy : copies) copy->run();  // touch every page, grow every scratch buffer
  const auto start = Clock::now();
  std::size_t next = 0;
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - start).count() < budget) {
    const auto begin = Clock::now();
    copies[next]->run();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    next = (next + 1) % copies.size();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

template <class Op>
void time_op(ops::Backend& backend, const MachinePeak& peak, double budget,
             const std::function<void(const OpTiming&)>& report) {
  for (const BenchCase& one : bench_cases<Op>()) {
    const OpFile file = one.make(case_seed(Op::kName, one.label));
    double held = 0;
    for (const auto& [name, tensor] : file.tensors) held += static_cast<double>(tensor.bytes.size());
    const auto copies =
        std::clamp(static_cast<std::size_t>(kRotationBytes / held), std::size_t{1}, kMaxCopies);
    std::vector<std::unique_ptr<BoundOp>> bound;
    for (std::size_t i = 0; i < copies; ++i) bound.push_back(bind(backend, Op::kName, file));
    const double seconds = median_seconds(bound, budget);
    OpTiming timing;
    timing.op = Op::kName;
    timing.label = one.label;
    timing.microseconds = seconds * 1e6;
    timing.gigabytes_per_second = one.bytes / seconds / 1e9;
    timing.gigaflops = one.flops / seconds / 1e9;
    timing.percent_of_peak = 100 * std::max(timing.gigabytes_per_second / peak.read_gigabytes_per_second,
                                            timing.gigaflops / peak.gigaflops);
    report(timing);
  }
}

}  // namespace
}  // namespace runner

MachinePeak bench_ops(const OpBenchOptions& options, const std::function<void(const MachinePeak&)>& measured,
                      const std::function<void(const OpTiming&)>& report) {
  MachinePeak peak;
  {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    ThreadPool pool(options.threads > 0 ? options.threads : cores);
    peak.read_gigabytes_per_second = measure_read_bandwidth(pool) / 1e9;
    peak.gigaflops = measure_flops(pool) / 1e9;
  }
  measured(peak);
  const auto backend = ops::make_backend(options.backend, {.threads = options.threads});
  const auto time_one = [&]<class Op>() {
    runner::time_op<Op>(*backend, peak, options.seconds_per_case, report);
  };
  if (options.op.empty())
    ops::AllOps::for_each(time_one);
  else
    runner::find_op(options.op, time_one);
  return peak;
}

}  // namespace sluice
