// Rows of a cache that will be read soon, fetched in the course of what is computed meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace sluice::backend::cpu {

// Keys and values in turns of a few lines. Memory idles while nothing is under way, but a processor that
// waits for room among the lines under way computes nothing either: turns belong between all parts of the
// work. Lines go to the second-level cache, the first is full of what is multiplied. Addresses behind the
// cache are harmless.
class AttendAhead {
 public:
  static constexpr std::size_t kTurn = 256;  // bytes
  struct Rows {
    std::uintptr_t data;
    std::int64_t stride;  // bytes
    std::size_t bytes;
  };

  AttendAhead() = default;
  // `count` rows of either.
  AttendAhead(const Rows& keys, const Rows& values, std::size_t count)
      : rows_(keys), next_(values), left_(2 * count) {}

  void fetch(std::size_t turns) {
    for (; turns > 0 && left_ > 0; --turns) {
      const auto* at = reinterpret_cast<const std::byte*>(rows_.data + done_);
      __builtin_prefetch(at, 0, 2);
      __builtin_prefetch(at + 64, 0, 2);
      __builtin_prefetch(at + 128, 0, 2);
      __builtin_prefetch(at + 192, 0, 2);
      done_ += kTurn;
      if (done_ >= rows_.bytes) turn_to_next();
    }
  }

 private:
  void turn_to_next() {
    rows_.data += static_cast<std::uintptr_t>(rows_.stride);
    std::swap(rows_, next_);
    done_ = 0;
    --left_;
  }

  Rows rows_{};
  Rows next_{};
  std::size_t done_ = 0;  // bytes of the present row
  std::size_t left_ = 0;  // rows
};

}  // namespace sluice::backend::cpu
