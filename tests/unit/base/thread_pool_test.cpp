#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "expect_error.h"

namespace sluice {
namespace {

struct Range {
  int64_t begin, end;
  int worker;
};

std::vector<Range> ranges_of(ThreadPool& pool, int64_t begin, int64_t end, int64_t grain, bool dynamic) {
  std::mutex mutex;
  std::vector<Range> ranges;
  auto record = [&](int64_t b, int64_t e, int worker) {
    const std::lock_guard lock(mutex);
    ranges.push_back({b, e, worker});
  };
  if (dynamic) {
    pool.parallel_for_dynamic(begin, end, grain, record);
  } else {
    pool.parallel_for(begin, end, grain, record);
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

TEST(ThreadPool, RunCallsEveryWorkerOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    std::vector<std::atomic<int>> calls(threads);
    pool.run([&](int worker) { ++calls.at(worker); });
    for (auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPool, TheCallerIsWorkerZero) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.run([&](int worker) { ids[worker] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[2]);
}

TEST(ThreadPool, LoopsCoverTheRangeOnceAndSplitAtTheGrain) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (bool dynamic : {false, true}) {
      for (int64_t begin : {-7, 0, 3}) {
        for (int64_t length : {1, 2, 7, 16, 100}) {
          for (int64_t grain : {1, 3, 8, 1000}) {
            SCOPED_TRACE(testing::Message() << threads << " threads, dynamic " << dynamic << ", begin "
                                            << begin << ", length " << length << ", grain " << grain);
            int64_t reached = begin;
            for (const Range& range : ranges_of(pool, begin, begin + length, grain, dynamic)) {
              EXPECT_EQ(range.begin, reached);
              EXPECT_LT(range.begin, range.end);
              EXPECT_EQ((range.begin - begin) % grain, 0);
              EXPECT_TRUE(range.worker >= 0 && range.worker < threads);
              reached = range.end;
            }
            EXPECT_EQ(reached, begin + length);
          }
        }
      }
    }
  }
}

TEST(ThreadPool, TheStaticSplitIsBalancedAndInWorkerOrder) {
  ThreadPool pool(3);
  const auto ranges = ranges_of(pool, 0, 8, 1, false);
  ASSERT_EQ(ranges.size(), 3u);
  const int64_t lengths[] = {3, 3, 2};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ranges[i].worker, i);
    EXPECT_EQ(ranges[i].end - ranges[i].begin, lengths[i]);
  }
}

TEST(ThreadPool, AnEmptyRangeCallsNothing) {
  ThreadPool pool(2);
  EXPECT_TRUE(ranges_of(pool, 5, 5, 1, false).empty());
  EXPECT_TRUE(ranges_of(pool, 5, 4, 1, true).empty());
}

TEST(ThreadPool, TheFirstExceptionReachesTheCallerAndThePoolSurvives) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      const int thrower = round % threads;
      EXPECT_THROW(pool.run([&](int worker) {
        if (worker == thrower) throw std::out_of_range("one");
      }),
                   std::out_of_range);
      EXPECT_THROW(pool.run([](int) { throw std::out_of_range("all"); }), std::out_of_range);
      EXPECT_THROW(pool.parallel_for(0, 9, 1, [](int64_t, int64_t, int) { throw std::length_error("x"); }),
                   std::length_error);
    }
    int64_t sum = 0;
    std::mutex mutex;
    pool.parallel_for(0, 100, 1, [&](int64_t begin, int64_t end, int) {
      const std::lock_guard lock(mutex);
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum, 4950);
  }
}

TEST(ThreadPool, ADynamicLoopStopsHandingOutWorkAfterAnException) {
  ThreadPool pool(2);
  std::atomic<int64_t> chunks{0};
  EXPECT_THROW(pool.parallel_for_dynamic(0, int64_t{1} << 40, 1,
                                         [&](int64_t, int64_t, int) {
                                           if (++chunks == 100) throw std::runtime_error("stop");
                                         }),
               std::runtime_error);
  EXPECT_GE(chunks, 100);
}

TEST(ThreadPool, NestedLoopsRunInPlaceAsTheSameWorker) {
  ThreadPool pool(3);
  std::atomic<int> inner_calls{0};
  pool.run([&](int outer) {
    for (bool dynamic : {false, true}) {
      auto check = [&](int64_t begin, int64_t end, int inner) {
        EXPECT_EQ(begin, 0);
        EXPECT_EQ(end, 64);
        EXPECT_EQ(inner, outer);
        ++inner_calls;
      };
      dynamic ? pool.parallel_for_dynamic(0, 64, 1, check) : pool.parallel_for(0, 64, 1, check);
    }
    expect_error(ErrorKind::internal, {"inside a task"}, [&] { pool.run([](int) {}); });
  });
  EXPECT_EQ(inner_calls, 6);
  // A loop too short to divide still counts as a task.
  pool.parallel_for(0, 1, 1, [&](int64_t, int64_t, int) {
    pool.parallel_for(0, 64, 1, [&](int64_t, int64_t end, int) { EXPECT_EQ(end, 64); });
  });
}

TEST(ThreadPool, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(4);
  constexpr int kCallers = 4;
  constexpr int kRounds = 500;
  std::vector<int64_t> scratch(4, 0);  // not atomic: two concurrent jobs would be a data race and lose counts
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < kRounds; ++round) {
        if ((round + caller) % 3 == 0) {
          pool.parallel_for_dynamic(
              0, 8, 1, [&](int64_t begin, int64_t end, int worker) { scratch[worker] += end - begin; });
        } else {
          pool.parallel_for(0, 8, 1,
                            [&](int64_t begin, int64_t end, int worker) { scratch[worker] += end - begin; });
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), int64_t{0}), int64_t{8} * kCallers * kRounds);
}

TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(2);
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(round * 4));  // around the time when workers fall asleep
    std::atomic<int> calls{0};
    pool.run([&](int) { ++calls; });
    ASSERT_EQ(calls, 2);
  }
}

TEST(ThreadPool, AnIdlePoolUsesNoProcessorTime) {
  ThreadPool pool(4);
  pool.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto cpu_ms = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  };
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_ms() - before, 20);
}

TEST(ThreadPool, RefusesImpossibleSizes) {
  for (const int threads : {0, -3, 1 << 20})
    expect_error(ErrorKind::input, {std::to_string(threads) + " threads"}, [&] { ThreadPool{threads}; });
  ThreadPool pool(2);
  expect_error(ErrorKind::internal, {"grain 0"},
               [&] { pool.parallel_for(0, 4, 0, [](int64_t, int64_t, int) {}); });
}

TEST(ThreadPool, StartsAndStopsRepeatedly) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(1 + round % 5);
    if (round % 2 == 0) pool.run([](int) {});
  }
}

}  // namespace
}  // namespace sluice
