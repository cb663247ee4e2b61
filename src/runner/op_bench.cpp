#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/find_op.h"
#include "sluice/op_runner.h"

namespace sluice {

namespace runner {

namespace {

// Copies of a case's operands are used in rotation, so that together they exceed the caches, as weights and
// states do when a model runs. Large cases need only one.
constexpr double kRotationBytes = 768e6;
constexpr std::size_t kMaxCopies = 512;

double seconds_of(auto&& work) {
  const auto begin = Clock::now();
  work();
  return seconds_since(begin);
}

// The median time of one run. A device runs all copies as one program, because launches would outlast small
// ops.
double median_seconds(ops::Backend& backend, std::vector<std::unique_ptr<BoundOp>>& copies, double budget) {
  for (auto& copy : copies) copy->run();  // touch every page, grow every scratch buffer
  std::unique_ptr<ops::Program> program;
  if (backend.traits().records)
    program = backend.record([&] {
      for (auto& copy : copies) copy->enqueue();
    });
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || seconds_since(start) < budget) {
    if (program == nullptr) {
      times.push_back(seconds_of([&] { copies[times.size() % copies.size()]->run(); }));
    } else {
      times.push_back(seconds_of([&] {
                        program->run();
                        backend.synchronize();
                      }) /
                      to_double(copies.size()));
    }
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

MachinePeak peak_of(ops::Backend& backend, const OpBenchOptions& options) {
  const ops::Rates rates = backend.measure_rates(options.memory / 2);
  return {rates.read_bytes_per_second / 1e9, rates.flops_per_second / 1e9};
}

MachinePeak better(const MachinePeak& a, const MachinePeak& b) {
  return {std::max(a.read_gigabytes_per_second, b.read_gigabytes_per_second),
          std::max(a.gigaflops, b.gigaflops)};
}

// Bytes of all copies of a case, enough that no cache keeps them from one run to the next.
double rotation_bytes(const OpBenchOptions& options) {
  return options.memory == 0 ? kRotationBytes
                             : std::min<double>(kRotationBytes, to_double(options.memory) / 2);
}

void time_op(ops::Backend& backend, std::string_view op, const std::vector<BenchCase>& table,
             const OpBenchOptions& options, const std::function<void(const OpTiming&)>& report) {
  for (const BenchCase& one : table) {
    const OpFile file = one.make(case_seed(op, one.label));
    double held = 0;
    for (const auto& [name, tensor] : file.tensors) held += tensor.bytes.size();
    const auto copies =
        std::clamp(static_cast<std::size_t>(rotation_bytes(options) / held), std::size_t{1}, kMaxCopies);
    std::vector<std::unique_ptr<BoundOp>> bound;
    for (std::size_t i = 0; i < copies; ++i) bound.push_back(bind(backend, op, file));
    // Measured before and after, because the speed of a shared machine changes from minute to minute.
    const MachinePeak before = peak_of(backend, options);
    const double seconds = median_seconds(backend, bound, options.seconds_per_case);
    OpTiming timing;
    timing.peak = better(before, peak_of(backend, options));
    timing.op = op;
    timing.label = one.label;
    timing.microseconds = seconds * 1e6;
    timing.gigabytes_per_second = one.bytes / seconds / 1e9;
    timing.gigaflops = one.flops / seconds / 1e9;
    timing.percent_of_peak =
        100 * std::max(timing.gigabytes_per_second / timing.peak.read_gigabytes_per_second,
                       timing.gigaflops / timing.peak.gigaflops);
    report(timing);
  }
}

}  // namespace
}  // namespace runner

MachinePeak bench_ops(const OpBenchOptions& options, const std::function<void(const MachinePeak&)>& measured,
                      const std::function<void(const OpTiming&)>& report) {
  const auto backend = ops::make_backend(
      options.backend, {.threads = options.threads, .exact = options.exact, .isa = options.isa});
  const MachinePeak peak = runner::peak_of(*backend, options);
  measured(peak);
  const auto time_one = [&]<class Op>() {
    runner::time_op(*backend, Op::kName, runner::bench_cases<Op>(), options, report);
  };
  if (options.op.empty())
    ops::AllOps::for_each(time_one);
  else
    runner::find_op(options.op, time_one);
  return peak;
}

}  // namespace sluice
