// One bit per token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::grammar::automaton {

class BitMask {
 public:
  BitMask() = default;
  explicit BitMask(std::size_t bits) : words_((bits + 31) / 32) {}

  void set(std::int32_t bit) { words_[static_cast<std::uint32_t>(bit) >> 5] |= 1u << (bit & 31); }
  bool test(std::int32_t bit) const {
    return (words_[static_cast<std::uint32_t>(bit) >> 5] >> (bit & 31) & 1) != 0;
  }
  BitMask& operator|=(const BitMask& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  bool empty() const { return words_.empty(); }
  std::span<const std::uint32_t> words() const { return words_; }

 private:
  std::vector<std::uint32_t> words_;
};

}  // namespace sluice::grammar::automaton
