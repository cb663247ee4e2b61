// The syntax of regular expressions: RE2's, and the part of ECMAScript's that a regular language can express.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/arena.h"
#include "grammar/regex/char_set.h"

namespace sluice::grammar::regex {

struct Pattern {
  enum class Kind {
    empty,
    chars,
    concat,
    any_of,
    repeat,
    begin,
    end,
    boundary,
    no_boundary,
    ahead,
    not_ahead
  };

  Kind kind = Kind::empty;
  CharSet chars = {};
  std::uint32_t min = 0, max = 0;
  std::vector<Pattern> parts = {};
};

struct PatternDialect {
  bool ecma = false;  // changes . and \s, and makes a stray { or ] a literal
};

// Throws with kind `input` or `unsupported`; the message names the byte of the pattern.
Pattern parse_pattern(std::string_view text, PatternDialect dialect);

// The characters that \w matches, between which and others word boundaries lie.
const CharSet& word_characters();

// How the characters of a text are encoded.
enum class TextForm { utf8, json_string };

// The whole text matches.
Id match_regex(Arena& arena, const Pattern& pattern, TextForm form);
// A part of the text matches.
Id search_regex(Arena& arena, const Pattern& pattern, TextForm form);

}  // namespace sluice::grammar::regex
