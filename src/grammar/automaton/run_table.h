// Strings: a prefix, then m to n units (characters, plain or escaped), then an end that no unit begins with.
// Whether a token fits depends only on its number of units, so one table serves every m and n.
#pragma once

#include <optional>
#include <vector>

#include "grammar/automaton/bit_mask.h"
#include "grammar/automaton/token_trie.h"
#include "grammar/regex/lexer.h"
#include "grammar/step_clock.h"

namespace sluice::grammar::automaton {

struct Run {
  regex::Id prefix;  // a fixed sequence of bytes, or kEmpty
  regex::Id unit;
  regex::Id end;
  std::uint32_t min, max;
};

// The expression as a run, if it is one.
std::optional<Run> as_run(regex::Id regex, regex::Lexer& lexer);

class RunTable {
 public:
  RunTable(const Run& run, regex::Lexer& lexer, const TokenTrie& trie,
           std::span<const std::string_view> bytes, StepClock& clock);

  // Adds the tokens that end inside the run after at most `max` units, the last of them perhaps incomplete.
  void add_inside(std::uint32_t max, BitMask& mask) const;
  // The rest of tokens after the lexeme's end, with the number of units as weight. Tokens that end before it,
  // but after the last unit, are at the root.
  const TokenTrie& suffixes() const { return suffixes_; }
  // All tokens that end inside.
  const BitMask& inside() const { return masks_.back(); }

 private:
  struct Inside {
    std::uint32_t units;
    std::int32_t token;
  };
  struct Walk;

  std::vector<Inside> inside_;           // sorted by units
  std::vector<std::uint32_t> up_to_;     // ascending unit counts that have a mask
  std::vector<std::uint32_t> position_;  // one past their last token in inside_
  std::vector<BitMask> masks_;
  TokenTrie suffixes_;
};

}  // namespace sluice::grammar::automaton
