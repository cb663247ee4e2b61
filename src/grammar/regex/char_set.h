// Sets of Unicode characters, and their UTF-8 as regular expressions over bytes.
#pragma once

#include <string_view>
#include <vector>

#include "grammar/regex/arena.h"

namespace sluice::grammar::regex {

class CharSet {
 public:
  struct Range {
    char32_t first, last;
    friend bool operator==(const Range&, const Range&) = default;
  };

  CharSet() = default;
  CharSet(std::initializer_list<Range> ranges) {
    for (const Range& range : ranges) add(range.first, range.last);
  }
  static CharSet of(char32_t c) { return {{c, c}}; }
  static CharSet all() { return {{0, 0x10FFFF}}; }

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;
  CharSet minus(const CharSet& other) const { return intersection(other.complement()); }
  // The union with these characters, which are sorted.
  CharSet with(const std::vector<char32_t>& characters) const;
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  const std::vector<Range>& ranges() const { return ranges_; }
  friend bool operator==(const CharSet&, const CharSet&) = default;

 private:
  std::vector<Range> ranges_;  // ascending and disjoint
};

// One character of the set; surrogates are not characters.
Id utf8_regex(Arena& arena, const CharSet& set);

}  // namespace sluice::grammar::regex
