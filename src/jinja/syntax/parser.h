// Builds a syntax tree from tokens, with jinja2's grammar.
#pragma once

#include <string_view>

#include "jinja/syntax/ast.h"

namespace sluice::jinja {

Body parse(std::string_view source);

}  // namespace sluice::jinja
