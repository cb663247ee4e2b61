// Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja {

std::string str(Budget& budget, const Value& value);
std::string repr(Budget& budget, const Value& value);
std::string repr(std::string_view text);
std::string repr(double value);

}  // namespace sluice::jinja
