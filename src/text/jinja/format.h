// Python's two ways of formatting strings.
#pragma once

#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

// format % arguments
Value percent_format(Budget& budget, const Value& format, const Value& arguments);
// format.format(...)
Value brace_format(Runtime& runtime, const Value& format, const Call& call);

}  // namespace sluice::text::jinja
