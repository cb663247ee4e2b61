// For one state of a lexeme, the effect of every token: it stays inside, or it ends the lexeme and leaves a
// suffix to the parser. Most tokens inside strings stay, so a mask is mostly a copy.
#pragma once

#include <vector>

#include "grammar/automaton/bit_mask.h"
#include "grammar/automaton/token_trie.h"
#include "grammar/regex/lexer.h"
#include "grammar/step_clock.h"

namespace sluice::grammar::automaton {

// Tokens that stay inside a lexeme wherever all characters of JSON strings do.
struct Slice {
  std::uint32_t units;  // the most characters of a token
  BitMask inside;       // tokens made of such characters, the last perhaps incomplete
  TokenTrie remaining;  // all other tokens
};

struct LexemeTable {
  BitMask inside;                        // tokens after which the lexeme continues or has just ended
  TokenTrie suffixes;                    // the rest of tokens after the lexeme's end, if small,
  std::vector<std::uint32_t> crossings;  // otherwise the trie nodes where the lexeme may end
  const Slice* slice = nullptr;          // if set, the trie is that of the slice's remaining tokens
};

// The number of arbitrary units after which the state is still inside its lexeme, counted up to `enough`;
// kNoLimit if unlimited.
std::uint32_t covered_units(regex::LexState state, regex::LexState unit, std::uint32_t enough,
                            regex::Lexer& lexer);

LexemeTable make_lexeme_table(regex::LexState state, regex::Lexer& lexer, const TokenTrie& trie,
                              std::span<const std::string_view> bytes, StepClock& clock);

}  // namespace sluice::grammar::automaton
