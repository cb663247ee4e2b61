// Prefetches cache rows during the computation that precedes their use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::backend::cpu::attention {

// Keys, then values, in turns of four lines. A core drops prefetches when its queue to memory is full, so
// turns should be spread over all parts of the work, one or two at a time. Lines are prefetched into the
// second-level cache, because the first is filled by the current operands. Addresses past the cache are
// harmless.
class AttendAhead {
 public:
  // The four lines of a turn are neighbours, or one from each quarter of the rows: Intel's cores keep more
  // requests in flight if these are in different pages, AMD's cores fewer.
  enum class Order { rows, quarters };
  struct Rows {
    std::uintptr_t data;
    std::int64_t stride;  // bytes
    std::size_t bytes;
  };

  AttendAhead() = default;
  // `count` rows of keys and as many of values.
  AttendAhead(const Rows& keys, const Rows& values, std::size_t count, Order order)
      : count_(count), order_(order), values_(values), values_left_(true) {
    start(keys);
  }

  void fetch(std::size_t turns) {
    for (; turns > 0 && left_ > 0; --turns) {
      const auto* at = reinterpret_cast<const std::byte*>(at_);
      __builtin_prefetch(at, 0, 2);
      __builtin_prefetch(at + apart_, 0, 2);
      __builtin_prefetch(at + 2 * apart_, 0, 2);
      __builtin_prefetch(at + 3 * apart_, 0, 2);
      at_ += step_;
      if (at_ >= row_end_) turn_to_next();
    }
  }

 private:
  void start(const Rows& rows) {
    rows_ = rows;
    at_ = rows.data;
    row_end_ = at_ + rows.bytes;
    const std::size_t quarter = (count_ + 3) / 4;
    const bool quarters = order_ == Order::quarters;
    apart_ = quarters ? static_cast<std::uintptr_t>(rows.stride) * quarter : 64;
    step_ = quarters ? 64 : 256;
    left_ = quarters ? quarter : count_;
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
  std::uintptr_t apart_ = 0;  // bytes between the lines of a turn
  std::uintptr_t step_ = 0;   // bytes between turns
  std::size_t left_ = 0;      // rows left, of all or of a quarter
  std::size_t count_ = 0;
  Order order_ = Order::rows;
  Rows rows_{};
  Rows values_{};
  bool values_left_ = false;
};

}  // namespace sluice::backend::cpu::attention
