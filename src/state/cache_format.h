// The format of cache rows.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::state {

// Rows are unpacked numbers, or packed: codes of the given bits and a norm each. A latent row is both key and
// value and uses the bits of keys.
struct CacheFormat {
  ops::DType type = ops::DType::f32;  // of numbers
  std::int64_t key_bits = 16;         // 16: numbers; BF16 beside packed values
  std::int64_t value_bits = 16;
  bool packed() const { return key_bits != 16 || value_bits != 16; }
};

// Rows per page: a multiple of the tiles that kernels read, few enough that a short sequence wastes little.
inline constexpr std::int64_t kPageRows = 256;

inline constexpr std::int64_t pages_for(std::int64_t rows) {
  return (rows + kPageRows - 1) / kPageRows;
}

// The size of a layer's state: the number of sequences, and the maximum of tokens in each.
struct Extent {
  std::int64_t slots = 1;
  std::int64_t capacity = 1;
  // Number of cache pages, which sequences take as they grow; 0: as many as all of them can need.
  std::int64_t pages = 0;
  // Snapshot places for recurrent states, besides those of the slots.
  std::int64_t snapshots = 0;
  // Whether sequences compute one at a time and memory is taken as they come and grow; slots and pages are
  // then maxima.
  bool growing = false;

  std::int64_t pages_per_slot() const { return pages_for(capacity); }
  std::int64_t all_pages() const { return pages > 0 ? pages : slots * pages_per_slot(); }
  // The extent of the caches' tensors, [pages, rows of a page, ...].
  Extent of_caches() const { return {.slots = all_pages(), .capacity = kPageRows}; }
  // Sequences of one step.
  std::int64_t at_once() const { return growing ? 1 : slots; }
};

// What one slot, or one page, of a tensor holds, for saving some tokens of it.
enum class Layout {
  whole,      // a slot: one state, whatever the length
  rows,       // a page: [rows, ...], a row per token
  head_rows,  // a page: [heads, rows, ...], a row per token for each head
};

// Throws if rows of that width cannot be packed.
void check_packed_width(std::int64_t width);

}  // namespace sluice::state
