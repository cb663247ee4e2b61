#include "grammar/regex/char_set.h"

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace sluice::grammar::regex {

void CharSet::add(char32_t first, char32_t last) {
  std::vector<Range> joined;
  bool placed = false;
  for (const Range& range : ranges_) {
    if (range.last + 1 < first) {
      joined.push_back(range);
    } else if (last + 1 < range.first) {
      if (!placed) joined.push_back({first, last});
      placed = true;
      joined.push_back(range);
    } else {
      first = std::min(first, range.first);
      last = std::max(last, range.last);
    }
  }
  if (!placed) joined.push_back({first, last});
  ranges_ = std::move(joined);
}

void CharSet::add(const CharSet& other) {
  std::vector<Range> all;
  std::ranges::merge(ranges_, other.ranges_, std::back_inserter(all), {}, &Range::first, &Range::first);
  ranges_.clear();
  for (const Range& range : all) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

CharSet CharSet::complement() const {
  CharSet result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= 0x10FFFF) result.ranges_.push_back({next, 0x10FFFF});
  return result;
}

CharSet CharSet::intersection(const CharSet& other) const {
  CharSet result;
  for (auto a = ranges_.begin(), b = other.ranges_.begin(); a != ranges_.end() && b != other.ranges_.end();) {
    const char32_t first = std::max(a->first, b->first), last = std::min(a->last, b->last);
    if (first <= last) result.ranges_.push_back({first, last});
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

CharSet CharSet::with(const std::vector<char32_t>& characters) const {
  CharSet others;
  for (const char32_t c : characters) {
    if (!others.ranges_.empty() && others.ranges_.back().last + 1 >= c) {
      others.ranges_.back().last = c;
    } else {
      others.ranges_.push_back({c, c});
    }
  }
  others.add(*this);
  return others;
}

bool CharSet::contains(char32_t c) const {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, &Range::first);
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

namespace {

std::string encoded(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

Id byte_range(Arena& arena, char first, char last) {
  return arena.bytes(ByteSet::range(static_cast<unsigned char>(first), static_cast<unsigned char>(last)));
}

// The sequences of equal length between two others: split until each byte is an independent range.
Id between(Arena& arena, std::string_view first, std::string_view last) {
  if (first.size() == 1) return byte_range(arena, first[0], last[0]);
  const Id any = arena.bytes(ByteSet::range(0x80, 0xBF));
  const auto rest = static_cast<std::uint32_t>(first.size() - 1);
  const std::string lowest(rest, '\x80'), highest(rest, '\xBF');
  if (first[0] == last[0])
    return arena.concat(byte_range(arena, first[0], first[0]),
                        between(arena, first.substr(1), last.substr(1)));
  std::vector<Id> choices;
  auto low = static_cast<unsigned char>(first[0]), high = static_cast<unsigned char>(last[0]);
  if (first.substr(1) != lowest)
    choices.push_back(arena.concat(arena.byte(low++), between(arena, first.substr(1), highest)));
  if (last.substr(1) != highest)
    choices.push_back(arena.concat(arena.byte(high--), between(arena, lowest, last.substr(1))));
  if (low <= high)
    choices.push_back(arena.concat(arena.bytes(ByteSet::range(low, high)), arena.repeat(any, rest, rest)));
  return arena.any_of(std::move(choices));
}

}  // namespace

Id utf8_regex(Arena& arena, const CharSet& set) {
  constexpr CharSet::Range kLengths[] = {
      {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
  std::vector<Id> choices;
  for (const CharSet::Range& range : set.ranges()) {
    for (const CharSet::Range& length : kLengths) {
      const char32_t first = std::max(range.first, length.first), last = std::min(range.last, length.last);
      if (first <= last) choices.push_back(between(arena, encoded(first), encoded(last)));
    }
  }
  return arena.any_of(std::move(choices));
}

}  // namespace sluice::grammar::regex
