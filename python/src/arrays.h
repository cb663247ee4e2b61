// Host arrays that the extension hands to Python, which then owns them.
#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <vector>

namespace sluice::python {

namespace nb = nanobind;

template <class T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  const nb::capsule owner(held.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
}

}  // namespace sluice::python
