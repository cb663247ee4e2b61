// A set of bytes, such as those that one step of an automaton may read.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace sluice::grammar::regex {

struct ByteSet {
  std::array<std::uint64_t, 4> words{};

  static ByteSet range(unsigned first, unsigned last) {
    ByteSet set;
    for (unsigned byte = first; byte <= last; ++byte) set.add(byte);
    return set;
  }

  void add(unsigned char byte) { words[byte >> 6] |= std::uint64_t{1} << (byte & 63); }
  bool contains(unsigned char byte) const { return (words[byte >> 6] >> (byte & 63) & 1) != 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  int count() const {
    return std::popcount(words[0]) + std::popcount(words[1]) + std::popcount(words[2]) +
           std::popcount(words[3]);
  }
  // Any member; the set must not be empty.
  unsigned char first() const {
    unsigned word = 0;
    while (words[word] == 0) ++word;
    return 64 * word + static_cast<unsigned>(std::countr_zero(words[word]));
  }

  ByteSet& operator|=(const ByteSet& other) {
    for (int i = 0; i < 4; ++i) words[i] |= other.words[i];
    return *this;
  }
  ByteSet& operator&=(const ByteSet& other) {
    for (int i = 0; i < 4; ++i) words[i] &= other.words[i];
    return *this;
  }
  friend ByteSet operator|(ByteSet a, const ByteSet& b) { return a |= b; }
  friend ByteSet operator&(ByteSet a, const ByteSet& b) { return a &= b; }
  ByteSet operator~() const { return {{~words[0], ~words[1], ~words[2], ~words[3]}}; }
  friend bool operator==(const ByteSet&, const ByteSet&) = default;
};

}  // namespace sluice::grammar::regex
