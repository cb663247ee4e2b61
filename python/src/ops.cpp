// Ops on arrays: numpy's, and whatever speaks DLPack.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>

#include "bindings.h"
#include "op_arrays.h"
#include "sluice/error.h"
#include "sluice/op_runner.h"
#include "sluice/ops/quantize.h"

namespace sluice::python {

namespace {

// One backend with its threads. Calls take turns.
struct OpBackend {
  OpBackend(const std::string& name, int threads, bool exact)
      : backend(ops::make_backend(name, {.threads = threads, .exact = exact})) {}
  std::unique_ptr<ops::Backend> backend;
  std::mutex mutex;
};

// The field in host memory. Of a device it is copied; elsewhere the result itself is kept alive.
nb::object array_of(OpBackend& held, const ops::View& view, const OpResult& result, bool torch) {
  if (held.backend->traits().host_memory) {
    auto memory = std::make_unique<std::shared_ptr<const void>>(result.memory);
    const nb::capsule owner(memory.release(),
                            [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    return array_over(view, owner, torch);
  }
  const NewArray copy = new_array(view.dtype, view.shape);
  held.backend->download(copy.view.data, view.data,
                         static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype));
  return array_over(copy.view, copy.owner, torch);
}

nb::list run(OpBackend& held, const std::string& op, const std::map<std::string, Array>& tensors,
             std::map<std::string, std::string> attributes, bool torch) {
  OpArguments arguments{.tensors = {}, .attributes = std::move(attributes)};
  for (const auto& [name, array] : tensors) arguments.tensors.emplace(name, view_of(name, array));
  OpResult result;
  {
    const nb::gil_scoped_release release;
    const std::lock_guard lock(held.mutex);
    result = run_op(*held.backend, op, arguments);
  }
  nb::list made;
  for (const auto& [name, view] : result.fields)
    made.append(nb::make_tuple(name, array_of(held, view, result, torch)));
  return made;
}

// (words, scales, biases) of an affine weight.
nb::tuple quantize(const Array& values, int bits, int group_size, bool torch) {
  const ops::ConstView view = view_of("values", values);
  const std::int64_t columns = view.shape.back();
  const auto with_last = [&](std::int64_t last) {
    ops::Shape shape = view.shape;
    shape[shape.rank() - 1] = last;
    return shape;
  };
  if (bits < 1 || bits > 8 || group_size < 1)
    throw Error(ErrorKind::input, "a weight cannot be quantised to these bits and groups");
  const NewArray words = new_array(ops::DType::u32, with_last(columns * bits / 32));
  const NewArray scales = new_array(view.dtype, with_last(columns / group_size));
  const NewArray biases = new_array(view.dtype, with_last(columns / group_size));
  {
    const nb::gil_scoped_release release;
    ops::quantize_affine(view, bits, group_size, words.view.data, scales.view.data, biases.view.data);
  }
  return nb::make_tuple(array_over(words.view, words.owner, torch),
                        array_over(scales.view, scales.owner, torch),
                        array_over(biases.view, biases.owner, torch));
}

nb::dict describe(const OpDescription& op) {
  nb::list fields, attributes;
  for (const OpFieldDescription& field : op.fields)
    fields.append(nb::make_tuple(field.name, field.role, field.types, field.shape));
  for (const OpAttributeDescription& one : op.attributes)
    attributes.append(nb::make_tuple(one.name, one.type, one.default_value, one.meaning));
  nb::dict made;
  made["name"] = op.name;
  made["family"] = op.family;
  made["formula"] = op.formula;
  made["fields"] = fields;
  made["attributes"] = attributes;
  return made;
}

nb::list describe_all() {
  nb::list made;
  for (const OpDescription& op : describe_ops()) made.append(describe(op));
  return made;
}

}  // namespace

void bind_ops(nb::module_& module) {
  nb::class_<OpBackend>(module, "OpBackend")
      .def(nb::init<const std::string&, int, bool>(), nb::arg("name"), nb::arg("threads"), nb::arg("exact"))
      .def("description", [](const OpBackend& held) { return held.backend->description(); })
      .def("run", &run, nb::arg("op"), nb::arg("tensors"), nb::arg("attributes"), nb::arg("torch"));
  module.def("describe_ops", &describe_all);
  module.def("quantize", &quantize, nb::arg("values"), nb::arg("bits"), nb::arg("group_size"),
             nb::arg("torch"));
}

}  // namespace sluice::python
