// The text of JSON strings as regular expressions. A character has one spelling: itself, or the shortest
// escape where JSON demands one; so a name cannot be written in a way that evades a comparison.
#pragma once

#include <string>
#include <string_view>

#include "grammar/regex/arena.h"
#include "grammar/regex/char_set.h"

namespace sluice::grammar {

// One character of the set, as it is written inside a string.
RegexId json_char_regex(RegexArena& arena, const CharSet& set);
// Any character.
RegexId json_any_char(RegexArena& arena);
// The text as it is written inside a string.
std::string json_escaped(std::string_view text);
// Quotation marks around the content.
RegexId json_quoted(RegexArena& arena, RegexId content);

}  // namespace sluice::grammar
