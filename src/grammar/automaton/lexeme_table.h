// For one state of a lexeme, what every token does to it: stay inside, or end the lexeme and go on with a
// suffix that is the parser's business. Most tokens inside strings stay, so a mask is mostly a copy.
#pragma once

#include <vector>

#include "grammar/automaton/bit_mask.h"
#include "grammar/automaton/token_trie.h"
#include "grammar/regex/lexer.h"
#include "grammar/step_clock.h"

namespace sluice::grammar {

// Tokens of which it is known how they fare where all of them stay inside: the characters of JSON strings.
struct Slice {
  std::uint32_t units;  // a token has at most so many characters
  BitMask inside;       // tokens that are characters, the last perhaps unfinished
  TokenTrie remaining;  // all others
};

struct LexemeTable {
  BitMask inside;                        // tokens after which the lexeme goes on or has just ended
  TokenTrie suffixes;                    // what tokens have left after the lexeme's end, if that is little,
  std::vector<std::uint32_t> crossings;  // or the nodes of the trie where the lexeme may end
  const Slice* slice = nullptr;          // that trie is what the slice leaves of the vocabulary
};

// Through how many units, whichever they are, the state stays inside its lexeme. Counts up to `enough` and
// then says so; without end is kNoLimit.
std::uint32_t covered_units(LexState state, LexState unit, std::uint32_t enough, Lexer& lexer);

LexemeTable make_lexeme_table(LexState state, Lexer& lexer, const TokenTrie& trie,
                              std::span<const std::string_view> bytes, StepClock& clock);

}  // namespace sluice::grammar
