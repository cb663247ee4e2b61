// The states of all layers for a number of sequences ("slots"), each up to `capacity` tokens.
#pragma once

#include <span>

#include "sluice/ops/backend.h"
#include "state/block_part.h"
#include "state/layer_state.h"
#include "state/page_counts.h"
#include "state/pool_replica.h"

namespace sluice::state {

// The unit of copying: a page is a whole number of them.
inline constexpr std::int64_t kBlockRows = 64;
static_assert(kPageRows % kBlockRows == 0);

class StatePool {
 public:
  StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& shapes, const Extent& extent,
            const CacheFormat& format, std::unique_ptr<PoolReplica> replica = nullptr);

  // Bytes that such a pool takes when it is created, computed before anything is allocated.
  static std::size_t bytes(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                           const CacheFormat& format);
  // Bytes that a sequence of up to `capacity` tokens finally takes in a growing pool.
  static std::size_t slot_bytes(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                                const CacheFormat& format, std::int64_t capacity);
  // Bytes that it takes now, that a slot takes, and that it may take while no other slot is opened.
  std::size_t bytes() const;
  std::size_t bytes(std::int64_t slot) const;
  std::size_t promised_bytes() const;

  const Extent& extent() const { return extent_; }
  std::int64_t slots() const { return extent_.slots; }
  std::int64_t capacity() const { return extent_.capacity; }
  const std::vector<LayerState>& layers() const { return layers_; }
  // The replica with other layers on other nodes, or null.
  PoolReplica* replica() const { return replica_.get(); }
  // I32 [slots, pages per slot].
  const ops::ConstView& page_table() const { return page_table_; }
  std::int64_t free_pages() const { return pages_.free(); }

  // In a growing pool: from now on a slot may hold up to that many tokens.
  void promise(std::int64_t slot, std::int64_t capacity);
  std::int64_t open_slots() const;
  // Prepares a slot for a sequence of up to that many tokens, with an empty past.
  void open(std::int64_t slot, std::int64_t capacity);
  // Returns what a slot took; it must be opened before it is used again.
  void release(std::int64_t slot);
  // Empties the past: recurrent states become zero, pages are returned.
  void reset(std::int64_t slot);
  // The number of pages that make_writable() would take.
  std::int64_t missing_pages(std::int64_t slot, std::int64_t past, std::int64_t added) const;
  // Call before writing rows [past, past + added) of a slot: takes pages for them, and copies pages that
  // other slots share.
  void make_writable(std::int64_t slot, std::int64_t past, std::int64_t added);
  // Gives another slot the first `rows` rows of this one and its recurrent states. Pages are shared until one
  // of the two writes to them.
  void fork(std::int64_t from, std::int64_t to, std::int64_t rows);
  // The pages of a slot's rows, in order. Users other than slots call hold() to share a page and drop() to
  // release it.
  const std::vector<std::int32_t>& pages(std::int64_t slot) const { return taken_[slot]; }
  void hold(std::int32_t page);
  void drop(std::int32_t page);
  bool shared(std::int32_t page) const { return pages_.shared(page); }
  // Gives a slot the rows in these pages instead of its own. They are shared until it writes to them.
  void adopt(std::int64_t slot, std::span<const std::int32_t> pages);
  // Copies of recurrent states on the backend, after those of the slots. take_snapshot() returns a free place
  // with undefined contents; -1: none is free.
  std::int64_t free_snapshots() const { return std::ssize(free_snapshots_); }
  std::int32_t take_snapshot();
  void release_snapshot(std::int32_t place);
  void copy_to_snapshot(std::int64_t slot, std::int32_t place);
  void copy_from_snapshot(std::int64_t slot, std::int32_t place);
  // The number of bytes that save() copies for the recurrent states of a slot.
  void save_snapshot(std::int32_t place, std::span<std::byte> to);
  // Copies of a slot's recurrent states, and of the first `rows` rows of its caches if requested. The
  // bytes do not depend on where the rows are or which nodes hold the layers: those of a replica follow.
  std::vector<std::byte> save(std::int64_t slot, std::int64_t rows, bool with_caches);
  void load(std::int64_t slot, std::int64_t rows, bool with_caches, std::span<const std::byte> saved);
  std::size_t saved_bytes(std::int64_t rows, bool with_caches) const;
  // The same for rows [begin, end) only, which are whole blocks of kBlockRows: block by block, so a copy of
  // many blocks contains the copies of fewer. The source of a load must stay until wait().
  void save_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::span<std::byte> to);
  void load_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::span<const std::byte> saved);
  // The same for one block in a page.
  void save_page_block(std::int32_t page, std::int64_t block, std::span<std::byte> to);
  // Waits until everything is loaded.
  void wait();
  std::size_t block_bytes() const { return saved_bytes(kBlockRows, true) - saved_bytes(0, true); }

 private:
  // Parts of the backend's memory in the order in which they are saved.
  using Parts = std::vector<ops::MemoryPart>;
  void gather(const Parts& parts, std::span<std::byte> to);
  Parts parts_of_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end) const;
  Parts parts_of_slot(std::int64_t slot, std::int64_t rows, bool with_caches) const;
  template <class F>
  void for_each_run(std::int64_t slot, std::int64_t rows, F&& f) const;
  template <class F>
  void for_each_saved(std::int64_t slot, std::int64_t rows, bool with_caches, F&& f) const;
  std::vector<std::int32_t>& pages_of(std::int64_t slot) { return taken_[slot]; }
  bool writable(const std::vector<std::int32_t>& pages, std::size_t i) const {
    return i < pages.size() && !pages_.shared(pages[i]);
  }
  template <class F>
  void for_each_in_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, F&& f) const;
  template <class F>
  void for_each_in_block(std::int64_t at, std::int64_t first, F&& f) const;
  template <class F>
  void for_each_state(F&& f) const;
  // Commits memory of a growing pool for that many pages or slots, each with a part of every tensor.
  struct Growing {
    std::unique_ptr<ops::GrowingBuffer> memory;
    std::size_t each = 0;
  };
  void* allocate(std::vector<Growing>& kind, std::size_t each, std::int64_t count);
  static void resize(std::vector<Growing>& kind, std::int64_t count);
  std::size_t table_row_bytes() const;
  std::int64_t promised_pages() const;
  void copy_page(std::int32_t from, std::int32_t to);
  void put_table(std::int64_t slot);
  void drop_pages(std::int64_t slot, std::size_t kept);
  void clear_states(std::int64_t slot);
  void share_pages(std::int64_t slot, std::span<const std::int32_t> pages);
  std::size_t own_bytes(std::int64_t rows, bool with_caches) const;
  std::size_t own_block_bytes() const { return own_bytes(kBlockRows, true) - own_bytes(0, true); }
  BlockPart own_part() const { return {0, own_block_bytes(), block_bytes()}; }

  ops::Backend& backend_;
  Extent extent_;
  std::vector<LayerState> layers_;
  StateBytes sizes_;
  std::vector<ops::Buffer> buffers_;
  std::vector<Growing> page_memory_;
  std::vector<Growing> slot_memory_;
  std::int64_t pages_with_memory_ = 0;  // of a growing pool
  std::int64_t slots_with_memory_ = 0;
  std::vector<std::int64_t> promised_;  // tokens by open slot of a growing pool, else 0
  PageCounts pages_;
  std::vector<std::int32_t> free_snapshots_;      // the next one last
  std::vector<std::vector<std::int32_t>> taken_;  // pages by slot
  ops::ConstView page_table_;
  void* table_memory_ = nullptr;
  std::unique_ptr<PoolReplica> replica_;
};

}  // namespace sluice::state
