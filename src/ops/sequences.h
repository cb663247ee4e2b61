// Access to the sequence fields of an op: one sequence without seq_starts, B with them; caches contiguous or
// paged.
#pragma once

#include <algorithm>

#include "sluice/ops/field.h"

namespace sluice::ops {

// The tokens [begin, end) of one sequence and its row in the pool.
struct Sequence {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t slot;
  std::int64_t tokens() const { return end - begin; }
};

// The cache of one sequence: contiguous, or in the pages that a table lists.
template <class AnyView>
struct SequenceCache {
  AnyView memory;                       // [S,..] or [KH,S,..]; with a table all pages of the pool
  const std::int32_t* pages = nullptr;  // the sequence's page table, or null
  std::int64_t page_rows = 0;

  // The memory that holds a row, [S,..] or [KH,S,..], and the row's index in it.
  AnyView block(std::int64_t row) const { return pages != nullptr ? memory[pages[row / page_rows]] : memory; }
  std::int64_t index(std::int64_t row) const { return pages != nullptr ? row % page_rows : row; }
  // How many of the rows [row, end) are contiguous.
  std::int64_t run(std::int64_t row, std::int64_t end) const {
    return pages != nullptr ? std::min(end - row, page_rows - row % page_rows) : end - row;
  }
  // One row of a cache [S,..].
  AnyView operator[](std::int64_t row) const { return block(row)[index(row)]; }
};

class Sequences {
 public:
  template <class Op>
  Sequences(const Op& op, std::int64_t tokens)
      : tokens_(tokens),
        count_(op.seq_starts.present() ? op.seq_starts.dim(0) - 1 : 1),
        starts_(static_cast<const std::int32_t*>(op.seq_starts.data)),
        slots_(static_cast<const std::int32_t*>(op.slots.data)) {
    if constexpr (requires { op.page_table; }) {
      table_ = static_cast<const std::int32_t*>(op.page_table.data);
      if (op.page_table.rank() == 2) table_stride_ = op.page_table.strides[0];
      if (op.page_table.present()) page_count_ = op.page_table.shape.back();
    }
  }

  std::int64_t count() const { return count_; }
  bool pooled() const { return starts_ != nullptr; }
  Sequence operator[](std::int64_t b) const {
    if (starts_ == nullptr) return {0, tokens_, 0};
    return {starts_[b], starts_[b + 1], slots_ != nullptr ? slots_[b] : b};
  }
  // The sequence of a token: the last non-empty one that starts at or before it.
  std::int64_t of_token(std::int64_t token) const {
    std::int64_t low = 0;
    std::int64_t high = count();
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      ((*this)[middle].begin <= token ? low : high) = middle;
    }
    return low;
  }
  // A sequence's part of a pooled state or cache.
  template <class AnyView>
  AnyView part(const AnyView& pool, const Sequence& sequence) const {
    return pooled() ? pool[sequence.slot] : pool;
  }
  // The page table of a sequence; null for contiguous caches.
  const std::int32_t* pages(const Sequence& sequence) const {
    return table_ != nullptr ? table_ + sequence.slot * table_stride_ : nullptr;
  }
  // Entries per sequence in the table.
  std::int64_t page_count() const { return page_count_; }
  // A sequence's cache with rows [S,..], or [KH,S,..] if `row_dimension` is 1.
  template <class AnyView>
  SequenceCache<AnyView> cache(const AnyView& pool, const Sequence& sequence, int row_dimension = 0) const {
    if (table_ == nullptr) return {part(pool, sequence)};
    return {pool, pages(sequence), pool.dim(1 + row_dimension)};
  }
  // The value for sequence b, which may be given per sequence or per call.
  static std::int64_t value(const SequenceValue& value, std::int64_t b) {
    return value.per_sequence.present() ? static_cast<const std::int32_t*>(value.per_sequence.data)[b]
                                        : value.value;
  }
  // The number of rows of sequence b, including its tokens', given as a length or as a start.
  template <class Op>
  std::int64_t length(const Op& op, std::int64_t b) const {
    const std::int64_t given = value(op.length, b);
    return given != 0 ? given : value(op.start, b) + (*this)[b].tokens();
  }

 private:
  std::int64_t tokens_;
  std::int64_t count_;
  const std::int32_t* starts_;
  const std::int32_t* slots_;
  const std::int32_t* table_ = nullptr;
  std::int64_t table_stride_ = 0;
  std::int64_t page_count_ = 0;
};

}  // namespace sluice::ops
