// Python's two ways of formatting strings.
#pragma once

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace sluice::jinja::builtins {

// format % arguments
Value percent_format(Budget& budget, const Value& format, const Value& arguments);
// format.format(...)
Value brace_format(Runtime& runtime, const Value& format, const Call& call);

}  // namespace sluice::jinja::builtins
