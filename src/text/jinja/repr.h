// Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

std::string str(Budget& budget, const Value& value);
std::string repr(Budget& budget, const Value& value);
std::string repr(std::string_view text);
std::string repr(double value);

}  // namespace sluice::text::jinja
