// Shapes and views: the place and layout of a tensor. A view does not own memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "sluice/ops/dtype.h"

namespace sluice::ops {

inline constexpr int kMaxRank = 6;

class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    for (const std::int64_t dim : dims) push_back(dim);
  }
  constexpr int rank() const { return rank_; }
  constexpr std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t& operator[](int i) { return dims_[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t back() const { return dims_[static_cast<std::size_t>(rank_ - 1)]; }
  constexpr void push_back(std::int64_t dim) {
    if (rank_ == kMaxRank) overflow();
    dims_[static_cast<std::size_t>(rank_++)] = dim;
  }
  constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[static_cast<std::size_t>(i)];
    return product;
  }
  constexpr std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  constexpr bool operator==(const Shape&) const = default;

 private:
  [[noreturn]] static void overflow();
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[2,3,4]"

// Row-major strides, in elements.
constexpr Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

// A reference to a tensor: pointer, type, shape and strides in elements. The last dimension is contiguous;
// outer ones may be strided, so a view can refer to some columns of a wider row. A default-constructed view
// means "absent".
template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;

  constexpr BasicView() = default;
  constexpr BasicView(Pointer data, DType dtype, const Shape& shape)
      : data(data), dtype(dtype), shape(shape), strides(contiguous_strides(shape)) {}
  constexpr BasicView(Pointer data, DType dtype, const Shape& shape, const Shape& strides)
      : data(data), dtype(dtype), shape(shape), strides(strides) {}
  // A mutable view converts to a read-only one.
  template <class Other>
  requires(!std::is_same_v<Other, Pointer> && std::is_convertible_v<Other, Pointer>) constexpr BasicView(
      const BasicView<Other>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data), dtype(other.dtype), shape(other.shape), strides(other.strides) {}

  constexpr bool present() const { return shape.rank() > 0; }
  constexpr int rank() const { return shape.rank(); }
  constexpr std::int64_t dim(int i) const { return shape[i]; }
  constexpr std::int64_t elements() const { return shape.elements(); }
  bool contiguous() const;

  // The sub-tensor at index i of the first dimension.
  BasicView operator[](std::int64_t i) const;
  // Columns [begin, begin + count) of the last dimension, viewed as `inner` (whose product is count).
  BasicView columns(std::int64_t begin, std::int64_t count, const Shape& inner) const;
  // Rows [begin, begin + count) of the first dimension.
  BasicView rows(std::int64_t begin, std::int64_t count) const;
  // The same elements under another shape; the view must be contiguous.
  BasicView reshaped(const Shape& shape) const;
};

using View = BasicView<void*>;
using ConstView = BasicView<const void*>;

}  // namespace sluice::ops
