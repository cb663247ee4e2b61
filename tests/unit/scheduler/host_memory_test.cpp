// Reused memory: no holder's bytes are overwritten, and the total does not grow.
#include "scheduler/prefix/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/error.h"
#include "printed_seed.h"
#include "sluice/ops/backend.h"

namespace sluice::scheduler::prefix {
namespace {

class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemory memory(std::size_t kept, std::size_t ahead = 0) {
    return {[this](std::size_t bytes) {
              ++allocations_;
              if (std::this_thread::get_id() == test_) ++own_allocations_;
              return backend_->allocate_pinned(bytes);
            },
            {.kept = kept, .ahead = ahead}};
  }
  static void wait_for(const HostMemory& memory, std::size_t bytes) {
    while (memory.bytes() < bytes) std::this_thread::yield();
  }
  static SavedState filled(HostMemory& memory, std::size_t bytes, unsigned with) {
    return memory.make(bytes, [&](std::span<std::byte> to) {
      EXPECT_EQ(to.size(), bytes);
      std::fill(to.begin(), to.end(), static_cast<std::byte>(with));
    });
  }
  static bool holds(const SavedState& state, unsigned value) {
    return std::all_of(state->begin(), state->end(),
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
  }

  std::shared_ptr<ops::Backend> backend_ = ops::make_backend("reference");
  std::atomic<int> allocations_ = 0;
  const std::thread::id test_ = std::this_thread::get_id();
  int own_allocations_ = 0;
};

TEST_F(HostMemoryTest, KeepsWhatSomebodyHolds) {
  std::mt19937 random(printed_seed());
  HostMemory all = memory(1 << 20);
  std::vector<std::pair<SavedState, unsigned>> held;
  for (unsigned i = 0; i < 3000; ++i) {
    if (random() % 2 == 0 || held.empty()) {
      const std::size_t bytes = random() % (random() % 4 == 0 ? 300'000 : 9'000);
      held.push_back({filled(all, bytes, i % 251), i % 251});
    } else {
      const std::size_t one = random() % held.size();
      EXPECT_TRUE(holds(held[one].first, held[one].second)) << i;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(one));
    }
    if (held.size() > 40) held.erase(held.begin(), held.begin() + 20);
  }
  for (const auto& [state, value] : held) EXPECT_TRUE(holds(state, value));
  held.clear();
  EXPECT_LE(all.bytes(), std::size_t{1} << 20);
}

TEST_F(HostMemoryTest, IsReused) {
  HostMemory all = memory(1 << 20);
  for (unsigned i = 0; i < 100; ++i) {
    const SavedState first = filled(all, 400'000, i);
    const SavedState second = filled(all, 500'000, i + 1);
    EXPECT_TRUE(holds(first, i));
  }
  EXPECT_EQ(allocations_, 1);
}

TEST_F(HostMemoryTest, PartsKeepTheWholeAlive) {
  SavedState part;
  {
    HostMemory all = memory(0);
    part = part_of(filled(all, 10'000, 7), 100, 50);
  }
  EXPECT_EQ(part->size(), 50u);
  EXPECT_TRUE(holds(part, 7));
}

TEST_F(HostMemoryTest, SaysWhereThereIsNone) {
  HostMemory none([](std::size_t) -> ops::Buffer { fail(ErrorKind::resource, "none"); }, {.kept = 1 << 20});
  EXPECT_THROW(filled(none, 10, 1), std::bad_alloc);
}

TEST_F(HostMemoryTest, AllocatesAheadOfRequests) {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  HostMemory all = memory(5 * kPiece, 2 * kPiece);
  std::vector<SavedState> held;
  for (std::size_t i = 0; i < 5; ++i) {
    wait_for(all, std::min<std::size_t>(5, i + 2) * kPiece);
    held.push_back(all.make(kPiece - 1000, [](std::span<std::byte> to) { to[0] = std::byte{1}; }));
  }
  EXPECT_EQ(own_allocations_, 0);
  EXPECT_EQ(all.bytes(), 5 * kPiece) << "no more than may be kept";
  held.push_back(all.make(kPiece, [](std::span<std::byte>) {}));
  EXPECT_EQ(own_allocations_, 1);
  held.clear();
  EXPECT_EQ(all.bytes(), 5 * kPiece);
}

TEST_F(HostMemoryTest, WorksIfNothingCanBeAllocatedAhead) {
  std::atomic<bool> asked = false;
  HostMemory all(
      [&](std::size_t bytes) {
        if (std::this_thread::get_id() != test_) {
          asked = true;
          fail(ErrorKind::resource, "none");
        }
        return backend_->allocate_pinned(bytes);
      },
      {.kept = 1 << 20, .ahead = 1 << 19});
  while (!asked) std::this_thread::yield();
  EXPECT_TRUE(holds(filled(all, 1000, 3), 3));
}

TEST_F(HostMemoryTest, MayBeUsedFromManyThreads) {
  HostMemory all = memory(1 << 18, 1 << 17);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&all, thread] {
      for (unsigned i = 0; i < 300; ++i) {
        const SavedState state = filled(all, 1 + (i * 977 + thread * 131) % 50'000, thread + 4 * (i % 60));
        EXPECT_TRUE(holds(state, thread + 4 * (i % 60)));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::scheduler::prefix
