// Sets of characters by Unicode properties, as \p{...} names them.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/regex/char_set.h"

namespace sluice::grammar::regex {

// A general category (L, Lu, Letter, gc=Lu), a script (Greek, Script=Greek, scx=Greek) or a binary property
// (Alphabetic); nothing if the name is unknown. Safe to call from any thread.
std::optional<CharSet> unicode_property(std::string_view name);

}  // namespace sluice::grammar::regex
