// Slots of a pool: what they save and load, and the pages that they take, share and return.
#include "state/state_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "expect_error.h"
#include "printed_seed.h"

namespace sluice::state {
namespace {

const std::vector<LayerStateShape> kShapes{KvCacheShape{2, 32, 64}, LatentCacheShape{64, 8},
                                           DeltaStateShape{2, 32, 32, 12, 4}};

struct Format {
  const char* name;
  CacheFormat cache;
};

class Pools : public ::testing::TestWithParam<Format> {
 protected:
  StatePool make(const Extent& extent) { return {*backend_, kShapes, extent, GetParam().cache}; }
  // Random bytes as the rows of a past.
  std::vector<std::byte> past(const StatePool& pool, std::int64_t rows) {
    std::vector<std::byte> bytes(pool.saved_bytes(rows, true));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  // The bytes that `save` writes.
  template <class Save>
  static std::vector<std::byte> saved(std::size_t bytes, Save&& save) {
    std::vector<std::byte> to(bytes, std::byte{0xa5});
    save(std::span(to));
    return to;
  }
  static std::vector<std::byte> snapshot(StatePool& pool, std::int32_t place) {
    return saved(pool.saved_bytes(0, false), [&](auto to) { pool.save_snapshot(place, to); });
  }

  std::unique_ptr<ops::Backend> backend_ = ops::make_backend("reference");
  std::mt19937 random_{17};
};

TEST_P(Pools, TakeTheBytesThatWereSaid) {
  for (const Extent& extent : {Extent{3, 40}, Extent{3, 600, 5}, Extent{3, 600, 5, 4}}) {
    const std::uint64_t before = backend_->allocated_bytes();
    const StatePool pool = make(extent);
    EXPECT_EQ(backend_->allocated_bytes() - before, StatePool::bytes(kShapes, extent, GetParam().cache));
  }
}

TEST_P(Pools, SavesMoveBetweenPools) {
  StatePool one = make({2, 700});
  StatePool other = make({3, 700, 9});
  for (const std::int64_t rows : {0, 1, 255, 256, 257, 700}) {
    const std::vector<std::byte> bytes = past(one, rows);
    one.load(1, rows, true, bytes);
    other.load(2, rows, true, one.save(1, rows, true));
    EXPECT_EQ(other.save(2, rows, true), bytes) << rows << " rows";
    EXPECT_EQ(other.save(2, rows / 2, true), one.save(1, rows / 2, true)) << rows << " rows, half of them";
    EXPECT_EQ(other.free_pages(), 9 - pages_for(rows));
  }
}

// Slots of random capacities are opened, grow, are emptied and closed; each keeps its contents, and the pool
// takes the predicted memory.
TEST_P(Pools, GrowWithTheirSequences) {
  std::mt19937 random(printed_seed());
  const Extent extent{.slots = 6, .capacity = 3000, .pages = 40, .growing = true};
  const std::uint64_t before = backend_->allocated_bytes();
  StatePool pool = make(extent);
  const std::uint64_t empty = backend_->allocated_bytes();
  EXPECT_EQ(empty - before, StatePool::bytes(kShapes, extent, GetParam().cache));
  struct Held {
    std::int64_t capacity = 0;
    std::int64_t rows = 0;
    std::vector<std::byte> bytes;
  };
  std::map<std::int64_t, Held> open;
  for (int turn = 0; turn < 300; ++turn) {
    const std::int64_t slot = random() % 6;
    const auto known = open.find(slot);
    if (known == open.end()) {
      const std::int64_t capacity = 1 + random() % 1500;
      pool.promise(slot, capacity);
      pool.open(slot, capacity);
      open[slot] = {capacity, 0, pool.save(slot, 0, true)};
      for (const std::byte byte : open[slot].bytes) ASSERT_EQ(byte, std::byte{});
    } else if (random() % 4 == 0) {
      pool.release(slot);
      open.erase(known);
    } else {
      Held& held = known->second;
      held.rows = random() % (held.capacity + 1);
      held.bytes = past(pool, held.rows);
      pool.load(slot, held.rows, true, held.bytes);
      EXPECT_EQ(pool.bytes(slot), StatePool::slot_bytes(kShapes, extent, GetParam().cache, held.rows));
    }
    std::uint64_t used = 0;
    std::uint64_t full = 0;
    for (const auto& [at, held] : open) {
      ASSERT_EQ(pool.save(at, held.rows, true), held.bytes) << "slot " << at;
      used += StatePool::slot_bytes(kShapes, extent, GetParam().cache, held.rows);
      full += StatePool::slot_bytes(kShapes, extent, GetParam().cache, held.capacity);
    }
    const std::uint64_t taken = backend_->allocated_bytes() - empty;
    ASSERT_EQ(taken + empty - before, pool.bytes());
    ASSERT_LE(used, taken);
    ASSERT_LE(full, pool.promised_bytes());
    ASSERT_LE(taken, pool.promised_bytes());
  }
  while (!open.empty()) {
    pool.release(open.begin()->first);
    open.erase(open.begin());
  }
  EXPECT_EQ(backend_->allocated_bytes(), empty);
  expect_error(ErrorKind::resource, {"5000 tokens"}, [&] {
    pool.promise(0, 6000);
    pool.promise(1, 5000);
  });
}

TEST_P(Pools, SlotsShareRowsUntilOneWrites) {
  StatePool pool = make({3, 700, 6});
  const std::vector<std::byte> bytes = past(pool, 300);
  pool.load(0, 300, true, bytes);
  pool.fork(0, 1, 300);
  pool.fork(0, 2, 256);
  EXPECT_EQ(pool.free_pages(), 4) << "nothing was copied";
  EXPECT_EQ(pool.save(1, 300, true), bytes);
  pool.make_writable(1, 300, 1);
  EXPECT_EQ(pool.free_pages(), 3) << "the page that is written to";
  pool.make_writable(2, 256, 10);
  EXPECT_EQ(pool.free_pages(), 2) << "a new page, as the shared one is full";
  const std::vector<std::byte> other = past(pool, 300);
  pool.load(1, 300, true, other);
  EXPECT_EQ(pool.save(0, 300, true), bytes) << "what others write stays theirs";
  EXPECT_EQ(pool.save(1, 300, true), other);
  for (std::int64_t slot = 0; slot < 3; ++slot) pool.reset(slot);
  EXPECT_EQ(pool.free_pages(), 6);
}

TEST_P(Pools, KeepSnapshotsOfStatesBesideTheirSlots) {
  StatePool pool = make({2, 300, 4, 2});
  const std::vector<std::byte> first = past(pool, 0);
  const std::vector<std::byte> second = past(pool, 0);
  pool.load(0, 0, false, first);
  pool.load(1, 0, false, second);
  const std::int32_t one = pool.take_snapshot();
  const std::int32_t other = pool.take_snapshot();
  EXPECT_EQ(pool.take_snapshot(), -1);
  pool.copy_to_snapshot(0, one);
  pool.copy_to_snapshot(1, other);
  pool.reset(0);
  EXPECT_EQ(snapshot(pool, one), first);
  EXPECT_EQ(snapshot(pool, other), second);
  pool.copy_from_snapshot(1, one);
  EXPECT_EQ(pool.save(1, 0, false), first);
  pool.release_snapshot(one);
  EXPECT_EQ(pool.free_snapshots(), 1);
}

TEST_P(Pools, SaveBlocksOfPagesAsThoseOfSlots) {
  StatePool pool = make({1, 600, 3});
  pool.load(0, 512, true, past(pool, 512));
  const std::size_t bytes = pool.block_bytes();
  for (const std::int64_t row : {0, 192, 256, 448}) {
    const std::int32_t page = pool.pages(0)[static_cast<std::size_t>(row / kPageRows)];
    EXPECT_EQ(saved(bytes, [&](auto to) { pool.save_page_block(page, row % kPageRows / kBlockRows, to); }),
              saved(bytes, [&](auto to) { pool.save_blocks(0, row, row + kBlockRows, to); }));
  }
  expect_error(ErrorKind::internal, {"memory of"},
               [&] { saved(bytes + 1, [&](auto to) { pool.save_page_block(pool.pages(0)[0], 0, to); }); });
}

TEST_P(Pools, RunOutOfPagesWithAWord) {
  StatePool pool = make({2, 1024, 3});
  pool.make_writable(0, 0, 600);
  expect_error(ErrorKind::resource, {"3 pages"}, [&] { pool.make_writable(1, 0, 1); });
  pool.reset(0);
  pool.make_writable(1, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, Pools,
                         ::testing::Values(Format{"f32", {}}, Format{"bf16", {ops::DType::bf16}},
                                           Format{"packed", {ops::DType::bf16, 4, 3}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::state
