// The functions by which each part adds itself to the extension.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

namespace sluice::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
// The Python exception for a C++ one, as an object.
nb::object exception_of(const std::exception_ptr& thrown);
void bind_engine(nb::module_& module);
void bind_session(nb::module_& module);
void bind_scheduler(nb::module_& module);
void bind_answers(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_studies(nb::module_& module);

}  // namespace sluice::python
