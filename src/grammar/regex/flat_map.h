// A hash map from 64-bit keys to 32-bit values in one array, without removal.
#pragma once

#include <cstdint>
#include <vector>

#include "base/integer_cast.h"

namespace sluice::grammar::regex {

class FlatMap {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  FlatMap() { clear(); }

  void clear() {
    std::vector<Slot>(256, {kFree, 0}).swap(slots_);
    count_ = 0;
  }
  std::uint32_t find(std::uint64_t key) const {
    for (std::size_t i = place(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].value;
      if (slots_[i].key == kFree) return kAbsent;
    }
  }
  void insert(std::uint64_t key, std::uint32_t value) {
    if (2 * ++count_ > slots_.size()) grow();
    put(key, value);
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key;
    std::uint32_t value;
  };

  std::size_t place(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15u;
    return to_size(key ^ key >> 32) & (slots_.size() - 1);
  }
  void put(std::uint64_t key, std::uint32_t value) {
    std::size_t i = place(key);
    while (slots_[i].key != kFree) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, value};
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size(), {kFree, 0});
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kFree) put(slot.key, slot.value);
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace sluice::grammar::regex
