// Rows of a cache that will be read soon, fetched in the course of what is computed meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::backend::cpu {

// Keys, then values, in turns of four lines, one from each of four places: the quarters of the rows. A core
// keeps more lines under way if they are not of one page, but drops what finds the queue to memory full:
// turns belong between all parts of the work, one or two at a time. Lines go to the second-level cache, the
// first is full of what is multiplied. Addresses behind the cache are harmless.
class AttendAhead {
 public:
  struct Rows {
    std::uintptr_t data;
    std::int64_t stride;  // bytes
    std::size_t bytes;
  };

  AttendAhead() = default;
  // `count` rows of either.
  AttendAhead(const Rows& keys, const Rows& values, std::size_t count)
      : quarter_rows_((count + 3) / 4), values_(values), values_left_(true) {
    start(keys);
  }

  void fetch(std::size_t turns) {
    for (; turns > 0 && left_ > 0; --turns) {
      const auto* at = reinterpret_cast<const std::byte*>(at_);
      __builtin_prefetch(at, 0, 2);
      __builtin_prefetch(at + quarter_, 0, 2);
      __builtin_prefetch(at + 2 * quarter_, 0, 2);
      __builtin_prefetch(at + 3 * quarter_, 0, 2);
      at_ += 64;
      if (at_ >= row_end_) turn_to_next();
    }
  }

 private:
  void start(const Rows& rows) {
    rows_ = rows;
    at_ = rows.data;
    row_end_ = at_ + rows.bytes;
    quarter_ = static_cast<std::uintptr_t>(rows.stride) * quarter_rows_;
    left_ = quarter_rows_;
  }
  void turn_to_next() {
    rows_.data += static_cast<std::uintptr_t>(rows_.stride);
    at_ = rows_.data;
    row_end_ = at_ + rows_.bytes;
    if (--left_ > 0 || !values_left_) return;
    values_left_ = false;
    start(values_);
  }

  std::uintptr_t at_ = 0;
  std::uintptr_t row_end_ = 0;
  std::uintptr_t quarter_ = 0;  // bytes
  std::size_t left_ = 0;        // rows of a quarter
  std::size_t quarter_rows_ = 0;
  Rows rows_{};
  Rows values_{};
  bool values_left_ = false;
};

}  // namespace sluice::backend::cpu
