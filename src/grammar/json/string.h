// JSON strings as regular expressions. Every character has one spelling: itself, or the shortest escape if
// JSON requires one; so no spelling of a name evades a comparison.
#pragma once

#include <string>
#include <string_view>

#include "grammar/regex/arena.h"
#include "grammar/regex/char_set.h"

namespace sluice::grammar {

// One character of the set, as written inside a string.
RegexId json_char_regex(RegexArena& arena, const CharSet& set);
// Any character.
RegexId json_any_char(RegexArena& arena);
// The text as written inside a string.
std::string json_escaped(std::string_view text);
// The content between quotation marks.
RegexId json_quoted(RegexArena& arena, RegexId content);

}  // namespace sluice::grammar
