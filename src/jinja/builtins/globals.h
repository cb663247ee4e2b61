// The functions that every template starts with.
#pragma once

#include "jinja/runtime/interpreter.h"

namespace sluice::jinja::builtins {

// range, dict, namespace, cycler, joiner, raise_exception and strftime_now.
void add_globals(Runtime& runtime, runtime::Scope& scope, const std::tm* now);

}  // namespace sluice::jinja::builtins
