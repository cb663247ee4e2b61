// Grammars as text: GBNF, and the EBNF of the XML standard as far as it differs.
#pragma once

#include <string_view>

#include "grammar/rules.h"

namespace sluice::grammar {

// Adds the rules of the text; the rule `root` is where a text begins.
RuleId compile_ebnf(std::string_view text, Rules& rules, RegexArena& arena);

}  // namespace sluice::grammar
