// Number and string literals.
#pragma once

#include <cstddef>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja::syntax {

// Reads the literal at `position` into `value`; returns its length, or 0 if there is none.
std::size_t scan_literal(std::string_view source, std::size_t position, Value& value);

}  // namespace sluice::jinja::syntax
