// Settings and results of generation, shared by sessions and the scheduler.
#pragma once

#include "bindings.h"
#include "sluice/session.h"

namespace sluice::python {

// Text as str: an incomplete character is replaced.
nb::str to_str(const std::string& text);
nb::object to_python(const GeneratedToken& token);  // (id, text, logprob, [(id, logprob)])
nb::dict to_python(const GenerateResult& result);
const char* name_of(FinishReason reason);

void bind_generation(nb::module_& module);

}  // namespace sluice::python
