// Ops on arrays of numpy, or anything with DLPack.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>

#include "bindings.h"
#include "home.h"
#include "op_arrays.h"
#include "sluice/error.h"
#include "sluice/op_runner.h"
#include "sluice/ops/quantize.h"
#include "sluice/ops/stream_order.h"
#include "unlocked.h"

namespace sluice::python {

namespace {

// One backend with its threads. Calls take turns.
struct OpBackend {
  OpBackend(const std::string& name, int threads, bool exact)
      : backend(ops::make_backend(name, {.threads = threads, .exact = exact})),
        order(dynamic_cast<ops::StreamOrder*>(backend.get())) {}
  ~OpBackend() {
    if (!home.here()) static_cast<void>(backend.release());
  }
  OpBackend(const OpBackend&) = delete;
  OpBackend& operator=(const OpBackend&) = delete;
  // The place of its memory.
  Place place() const { return order == nullptr ? Place{} : Place{order->device()}; }

  Home home;
  std::unique_ptr<ops::Backend> backend;
  ops::StreamOrder* order;  // the backend's; null if it computes in host memory
  std::mutex mutex;
};

// The field at `wanted`: if it is there already, the result itself is kept alive; otherwise it is copied to
// the host.
nb::object array_of(OpBackend& held, const ops::View& view, const OpResult& result, bool torch,
                    Place wanted) {
  if (held.place() == wanted) {
    auto memory = std::make_unique<std::shared_ptr<const void>>(result.memory);
    const nb::capsule owner(memory.release(),
                            [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
    return array_over(view, owner, torch, wanted);
  }
  const NewArray copy = new_array(view.dtype, view.shape);
  {
    const Unlocked unlocked;
    const std::lock_guard lock(held.mutex);
    held.backend->download(copy.view.data, view.data,
                           static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype));
  }
  return array_over(copy.view, copy.owner, torch);
}

// The common place of all tensors.
Place common_place(const std::map<std::string, Array>& tensors, Place backend) {
  std::optional<Place> common;
  for (const auto& [name, array] : tensors) {
    const Place place = place_of(name, array);
    if (!common) common = place;
    if (place != *common)
      throw Error(ErrorKind::input, "'" + name + "' lies elsewhere than the fields before it");
    if (!place.host() && place != backend)
      throw Error(ErrorKind::input, "'" + name + "' lies on CUDA device " +
                                        std::to_string(place.cuda_device) +
                                        ", the backend computes elsewhere");
  }
  return common.value_or(Place{});
}

// Tensors on a device are read after the work already in the stream there.
nb::list run(OpBackend& held, const std::string& op, const std::map<std::string, Array>& tensors,
             std::map<std::string, std::string> attributes, bool torch, std::uintptr_t stream) {
  held.home.check("backend");
  const Place place = common_place(tensors, held.place());
  OpArguments arguments{
      .tensors = {}, .attributes = std::move(attributes), .in_backend_memory = !place.host()};
  for (const auto& [name, array] : tensors) arguments.tensors.emplace(name, view_of(name, array));
  OpResult result;
  {
    const Unlocked unlocked;
    const std::lock_guard lock(held.mutex);
    if (!place.host()) held.order->wait_for(reinterpret_cast<void*>(stream));
    result = run_op(*held.backend, op, arguments);
  }
  nb::list made;
  for (const auto& [name, view] : result.fields)
    made.append(nb::make_tuple(name, array_of(held, view, result, torch, place)));
  return made;
}

// (words, scales, biases) of an affine weight.
nb::tuple quantize(const Array& values, int bits, int group_size, bool torch) {
  const ops::ConstView view = view_of("values", values);
  if (!place_of("values", values).host()) throw Error(ErrorKind::input, "'values' lies on a device");
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
    const Unlocked unlocked;
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
      .def("cuda_device",
           [](const OpBackend& held) -> std::optional<int> {
             if (held.place().host()) return std::nullopt;
             return held.place().cuda_device;
           })
      .def("run", &run, nb::arg("op"), nb::arg("tensors"), nb::arg("attributes"), nb::arg("torch"),
           nb::arg("stream") = 0);
  module.def("describe_ops", &describe_all);
  module.def("quantize", &quantize, nb::arg("values"), nb::arg("bits"), nb::arg("group_size"),
             nb::arg("torch"));
}

}  // namespace sluice::python
