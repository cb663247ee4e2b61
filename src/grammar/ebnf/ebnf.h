// Grammars as text: GBNF, and the EBNF of the XML standard where it differs.
#pragma once

#include <string_view>

#include "grammar/rules.h"

namespace sluice::grammar::ebnf {

// Adds the rules of the text and returns the rule `root`.
RuleId compile(std::string_view text, Rules& rules, regex::Arena& arena);

}  // namespace sluice::grammar::ebnf
