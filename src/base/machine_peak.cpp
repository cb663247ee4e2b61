// Each figure is the best of several repetitions: it is an upper bound of what the machine can do, not an
// average.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/machine_peak.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "base/integer_cast.h"
#include "base/machine_peak.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

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

// Twelve independent multiply-add chains hide the latency of any current core; they start from different
// values, or the compiler would merge them. Returns the number of operations.
double multiply_add(std::size_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;
  const auto factor = hn::Set(d, *sink + 0.999f);
  const auto addend = hn::Set(d, *sink + 0.001f);
  hn::Vec<decltype(d)> chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = hn::Set(d, *sink + static_cast<float>(c));
  for (std::size_t i = 0; i < rounds; ++i) {
    HWY_UNROLL(12)
    for (int c = 0; c < kChains; ++c) chains[c] = hn::MulAdd(chains[c], factor, addend);
  }
  auto sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum = hn::Add(sum, chains[c]);
  *sink = hn::GetLane(sum);
  return 2.0 * kChains * to_double(rounds) * to_double(hn::Lanes(d));
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/large_pages.h"

namespace sluice {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);

namespace {

struct Free {
  void operator()(void* data) const { std::free(data); }
};

}  // namespace

double measure_read_bandwidth(ThreadPool& pool, std::uint64_t most) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;  // several times any last-level cache
  constexpr std::uint64_t kLeastBytes = std::uint64_t{16} << 20;
  constexpr std::uint64_t kPiece = 4096;  // words
  const std::uint64_t allowed = most == 0 ? kBytes : std::clamp(most, kLeastBytes, kBytes);
  const std::size_t words = allowed / sizeof(std::uint64_t) / kPiece * kPiece;
  const std::size_t bytes = words * sizeof(std::uint64_t);
  // Allocated like weights and caches.
  const std::unique_ptr<void, Free> memory(allocate_in_pages(bytes, alignof(std::uint64_t)));
  if (memory == nullptr) fail(ErrorKind::resource, "no memory for a buffer of {} bytes", bytes);
  auto* const data = static_cast<std::uint64_t*>(memory.get());
  std::fill_n(data, words, 1);
  std::atomic<std::uint64_t> sink{0};
  double best = 0;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const auto start = Clock::now();
    pool.parallel_for(0, static_cast<std::int64_t>(words), kPiece,
                      [&](std::int64_t begin, std::int64_t end, int) {
                        sink ^= HWY_DYNAMIC_DISPATCH(read_all)(data + begin, to_size(end - begin));
                      });
    best = std::max(best, to_double(bytes) / seconds_since(start));
  }
  return best;
}

double measure_flops(ThreadPool& pool, const hwy::ChosenTarget& target) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  (void)target;
  const auto multiply_add = HWY_STATIC_DISPATCH(multiply_add);
#else
  const auto multiply_add = HWY_DISPATCH_TABLE(multiply_add)[target.GetIndex()];
#endif
  double best = 0;
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<double> done(to_size(pool.size()) * 8);  // one cache line per worker
    const auto start = Clock::now();
    pool.run([&](int worker) {
      float sink = 0;
      done[to_size(worker) * 8] = multiply_add(2'000'000, &sink);
      if (sink == 42) done[to_size(worker) * 8] = 0;  // keeps the compiler from dropping the computation
    });
    const double seconds = seconds_since(start);
    double total = 0;
    for (const double one : done) total += one;
    best = std::max(best, total / seconds);
  }
  return best;
}

}  // namespace sluice
#endif
