// Each figure is the best of several repetitions: the bound is what the machine can do, not what it does on
// average.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runner/machine_peak.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "runner/machine_peak.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::runner::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four streams of loads, so that the prefetchers see sequential access and no add chain limits the rate.
std::uint64_t read_all(const std::uint64_t* data, std::size_t count) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  auto c = hn::Zero(d);
  auto e = hn::Zero(d);
  for (std::size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Xor(a, hn::LoadU(d, data + i));
    b = hn::Xor(b, hn::LoadU(d, data + i + lanes));
    c = hn::Xor(c, hn::LoadU(d, data + i + 2 * lanes));
    e = hn::Xor(e, hn::LoadU(d, data + i + 3 * lanes));
  }
  return hn::GetLane(hn::Xor(hn::Xor(a, b), hn::Xor(c, e)));
}

// Twelve independent multiply-add chains hide the latency of any current core. Returns the operations done.
double multiply_add(std::size_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;
  const auto factor = hn::Set(d, *sink + 0.999f);
  const auto addend = hn::Set(d, *sink + 0.001f);
  auto c0 = addend, c1 = addend, c2 = addend, c3 = addend, c4 = addend, c5 = addend, c6 = addend, c7 = addend,
       c8 = addend, c9 = addend, c10 = addend, c11 = addend;
  for (std::size_t i = 0; i < rounds; ++i) {
    c0 = hn::MulAdd(c0, factor, addend), c1 = hn::MulAdd(c1, factor, addend),
    c2 = hn::MulAdd(c2, factor, addend);
    c3 = hn::MulAdd(c3, factor, addend), c4 = hn::MulAdd(c4, factor, addend),
    c5 = hn::MulAdd(c5, factor, addend);
    c6 = hn::MulAdd(c6, factor, addend), c7 = hn::MulAdd(c7, factor, addend),
    c8 = hn::MulAdd(c8, factor, addend);
    c9 = hn::MulAdd(c9, factor, addend), c10 = hn::MulAdd(c10, factor, addend),
    c11 = hn::MulAdd(c11, factor, addend);
  }
  const auto sum = hn::Add(
      hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)),
      hn::Add(hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)), hn::Add(hn::Add(c8, c9), hn::Add(c10, c11))));
  *sink = hn::GetLane(sum);
  return 2.0 * kChains * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

}  // namespace sluice::runner::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

namespace sluice::runner {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double measure_read_bandwidth(ThreadPool& pool) {
  constexpr std::size_t kWords = std::size_t{1} << 27;  // 1 GiB: several times any last-level cache
  std::vector<std::uint64_t> data(kWords, 1);
  std::atomic<std::uint64_t> sink{0};
  double best = 0;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(0, kWords, 4096, [&](std::int64_t begin, std::int64_t end, int) {
      sink ^= HWY_DYNAMIC_DISPATCH(read_all)(data.data() + begin, static_cast<std::size_t>(end - begin));
    });
    best = std::max(best, static_cast<double>(kWords * sizeof(std::uint64_t)) / seconds_since(start));
  }
  return best;
}

double measure_flops(ThreadPool& pool) {
  double best = 0;
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<double> done(static_cast<std::size_t>(pool.size()) * 8);  // one cache line a worker
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int worker) {
      float sink = 0;
      done[static_cast<std::size_t>(worker) * 8] = HWY_DYNAMIC_DISPATCH(multiply_add)(2'000'000, &sink);
      if (sink == 42) done[static_cast<std::size_t>(worker) * 8] = 0;  // the result is used
    });
    const double seconds = seconds_since(start);
    double total = 0;
    for (const double one : done) total += one;
    best = std::max(best, total / seconds);
  }
  return best;
}

}  // namespace sluice::runner
#endif
