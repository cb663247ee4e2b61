// The same slots on nodes with other layers: they repeat what a pool does with its slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::state {

// The members are those of StatePool. Both pools use the same pages, because they take them in the same
// order.
class PoolReplica {
 public:
  virtual ~PoolReplica() = default;

  // For growing pools.
  virtual void open(std::int64_t slot, std::int64_t capacity) = 0;
  virtual void reset(std::int64_t slot) = 0;
  virtual void release(std::int64_t slot) = 0;
  virtual void fork(std::int64_t from, std::int64_t to, std::int64_t rows) = 0;
  virtual void hold(std::int32_t page) = 0;
  virtual void drop(std::int32_t page) = 0;
  virtual void adopt(std::int64_t slot, std::span<const std::int32_t> pages) = 0;
  // Appends what is saved there to `saved`.
  virtual void save(std::int64_t slot, std::int64_t rows, bool with_caches,
                    std::vector<std::byte>& saved) = 0;
  virtual void load(std::int64_t slot, std::int64_t rows, bool with_caches,
                    std::span<const std::byte> saved) = 0;
  virtual std::size_t saved_bytes(std::int64_t rows, bool with_caches) const = 0;
  // Blocks as the pool saves them: in each, the bytes from `behind` on belong to the layers there.
  virtual void save_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::size_t behind,
                           std::span<std::byte> to) = 0;
  virtual void load_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, std::size_t behind,
                           std::span<const std::byte> saved) = 0;
  virtual void save_page_block(std::int32_t page, std::int64_t block, std::span<std::byte> to) = 0;
  virtual void copy_to_snapshot(std::int64_t slot, std::int32_t place) = 0;
  virtual void copy_from_snapshot(std::int64_t slot, std::int32_t place) = 0;
  virtual void save_snapshot(std::int32_t place, std::span<std::byte> to) = 0;
  virtual void wait() = 0;
};

}  // namespace sluice::state
