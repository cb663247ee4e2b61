// Characters that differ in their case alone, as (?i) takes them for the same.
#pragma once

#include "grammar/regex/char_set.h"

namespace sluice::grammar {

// The set with all cases of its characters: Unicode's simple case folding, as the installed PCRE2 knows it.
// May be called from any thread.
CharSet without_case(const CharSet& set);

}  // namespace sluice::grammar
