// Sets of characters by their properties in Unicode, as \p{...} names them.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/regex/char_set.h"

namespace sluice::grammar {

// A general category (L, Lu, Letter, gc=Lu), a script (Greek, Script=Greek, scx=Greek) or a property that is
// true or false (Alphabetic); nothing if there is none of that name. May be called from any thread.
std::optional<CharSet> unicode_property(std::string_view name);

}  // namespace sluice::grammar
