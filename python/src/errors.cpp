// sluice::Error as Python exceptions, one class per kind.
#include <array>
#include <string>
#include <string_view>

#include "bindings.h"
#include "sluice/error.h"

namespace sluice::python {

namespace {

// By kind; they live as long as the interpreter.
std::array<PyObject*, 6> classes;

struct Kind {
  ErrorKind kind;
  const char* name;
  const char* meaning;
  PyObject* also = nullptr;  // a built-in class that the error is also derived from
};

// File names may contain any bytes.
nb::str text_of(const std::exception& error) {
  const std::string_view text = error.what();
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetObject(classes[static_cast<std::size_t>(error.kind())], text_of(error).ptr());
  }
}

}  // namespace

nb::object exception_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return nb::borrow(classes[static_cast<std::size_t>(error.kind())])(text_of(error));
  } catch (const std::exception& error) {
    return nb::borrow(classes[static_cast<std::size_t>(ErrorKind::internal)])(text_of(error));
  }
}

void bind_errors(nb::module_& module) {
  PyObject* base =
      PyErr_NewExceptionWithDoc("sluice.Error", "The base of all errors of the engine.", nullptr, nullptr);
  module.attr("Error") = nb::borrow(base);
  const Kind kinds[] = {
      {ErrorKind::input, "InputError", "An argument or a request is invalid; also a ValueError.",
       PyExc_ValueError},
      {ErrorKind::checkpoint, "CheckpointError", "The model's files are damaged or incomplete."},
      {ErrorKind::unsupported, "UnsupportedError",
       "The model, the build or the machine cannot do it; also a NotImplementedError.",
       PyExc_NotImplementedError},
      {ErrorKind::resource, "ResourceError", "Memory, disk or a device is exhausted or lost."},
      {ErrorKind::busy, "BusyError",
       "The queue is full or a time limit was reached; trying again later may work."},
      {ErrorKind::internal, "InternalError", "A defect of the engine itself."},
  };
  for (const Kind& kind : kinds) {
    const nb::object bases = kind.also == nullptr ? nb::make_tuple(nb::borrow(base))
                                                  : nb::make_tuple(nb::borrow(base), nb::borrow(kind.also));
    PyObject* made = PyErr_NewExceptionWithDoc((std::string("sluice.") + kind.name).c_str(), kind.meaning,
                                               bases.ptr(), nullptr);
    classes[static_cast<std::size_t>(kind.kind)] = made;
    module.attr(kind.name) = nb::borrow(made);
  }
  nb::register_exception_translator(translate);
}

}  // namespace sluice::python
