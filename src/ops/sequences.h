// Reading the sequence fields of an op: one sequence without seq_starts, B with them.
#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The tokens [begin, end) of one sequence and its row in the pool.
struct Sequence {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t slot;
  std::int64_t tokens() const { return end - begin; }
};

class Sequences {
 public:
  template <class Op>
  Sequences(const Op& op, std::int64_t tokens)
      : tokens_(tokens),
        count_(op.seq_starts.present() ? op.seq_starts.dim(0) - 1 : 1),
        starts_(static_cast<const std::int32_t*>(op.seq_starts.data)),
        slots_(static_cast<const std::int32_t*>(op.slots.data)) {}

  std::int64_t count() const { return count_; }
  bool pooled() const { return starts_ != nullptr; }
  Sequence operator[](std::int64_t b) const {
    if (starts_ == nullptr) return {0, tokens_, 0};
    return {starts_[b], starts_[b + 1], slots_ != nullptr ? slots_[b] : b};
  }
  // The sequence that holds a token: the last one that starts at or before it and is not empty.
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
  // The number of sequence b where it may be given per sequence.
  static std::int64_t value(const SequenceValue& value, std::int64_t b) {
    return value.per_sequence.present() ? static_cast<const std::int32_t*>(value.per_sequence.data)[b]
                                        : value.value;
  }
  // The rows of sequence b, its tokens' own included, where they are given as a length or as a start.
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
};

}  // namespace sluice::ops
