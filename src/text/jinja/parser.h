// Tokens -> syntax tree, with jinja2's grammar.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace sluice::text::jinja {

Body parse(std::string_view source);

}  // namespace sluice::text::jinja
