// JSON strings as regular expressions. Every character has one spelling: itself, or the shortest escape if
// JSON requires one; so no spelling of a name evades a comparison.
#pragma once

#include <string>
#include <string_view>

#include "grammar/regex/arena.h"
#include "grammar/regex/char_set.h"

namespace sluice::grammar::json {

// One character of the set, as written inside a string.
regex::Id char_regex(regex::Arena& arena, const regex::CharSet& set);
// Any character.
regex::Id any_char(regex::Arena& arena);
// The text as written inside a string.
std::string escaped(std::string_view text);
// The content between quotation marks.
regex::Id quoted(regex::Arena& arena, regex::Id content);

}  // namespace sluice::grammar::json
