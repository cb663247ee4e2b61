// For one state of a lexeme, what every token does to it: stay inside, or end the lexeme and go on with a
// suffix that is the parser's business. Most tokens inside strings stay, so a mask is mostly a copy.
#pragma once

#include <vector>

#include "grammar/automaton/bit_mask.h"
#include "grammar/automaton/step_clock.h"
#include "grammar/automaton/token_trie.h"
#include "grammar/regex/lexer.h"

namespace sluice::grammar {

struct LexemeTable {
  BitMask inside;                        // tokens after which the lexeme goes on or has just ended
  TokenTrie suffixes;                    // what tokens have left after the lexeme's end, if that is little,
  std::vector<std::uint32_t> crossings;  // or the nodes of the trie where the lexeme may end
  bool of_slice = false;                 // that trie is what a slice leaves of the vocabulary
};

// Tokens of which it is known how they fare where all of them stay inside: the characters of JSON strings.
struct Slice {
  BitMask inside;       // tokens that are characters, the last perhaps unfinished
  TokenTrie remaining;  // all others
};

// Whether the state stays inside its lexeme through all characters of the slice.
bool covers(LexState state, LexState unit, Lexer& lexer);

LexemeTable make_lexeme_table(LexState state, Lexer& lexer, const TokenTrie& trie,
                              std::span<const std::string_view> bytes, StepClock& clock);

}  // namespace sluice::grammar
