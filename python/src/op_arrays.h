// Converts between arrays of numpy, or anything with DLPack, and the ops' views.
#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <string>

#include "sluice/ops/view.h"

namespace sluice::python {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::c_contig>;

// The host, or the CUDA device with that number.
struct Place {
  int cuda_device = -1;
  bool host() const { return cuda_device < 0; }
  bool operator==(const Place&) const = default;
};
Place place_of(const std::string& field, const Array& array);

ops::ConstView view_of(const std::string& field, const Array& array);
// An array over memory at that place that `owner` keeps alive; a torch tensor if requested, and always on a
// device or for BF16.
nb::object array_over(const ops::View& view, const nb::capsule& owner, bool torch, Place place = {});
// A new array with its own memory.
struct NewArray {
  ops::View view;
  nb::capsule owner;
};
NewArray new_array(ops::DType type, const ops::Shape& shape);

}  // namespace sluice::python
