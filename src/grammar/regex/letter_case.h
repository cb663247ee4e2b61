// Case-insensitive character sets, for (?i).
#pragma once

#include "grammar/regex/char_set.h"

namespace sluice::grammar::regex {

// The set with all cases of its characters: Unicode's simple case folding, as the installed PCRE2 implements
// it. Safe to call from any thread.
CharSet without_case(const CharSet& set);

}  // namespace sluice::grammar::regex
