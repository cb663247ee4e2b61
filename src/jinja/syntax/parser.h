// Builds a syntax tree from tokens, with jinja2's grammar.
#pragma once

#include <string_view>

#include "jinja/syntax/ast.h"

namespace sluice::jinja::syntax {

Body parse(std::string_view source);

}  // namespace sluice::jinja::syntax
