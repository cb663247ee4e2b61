#include "sluice/ops/view.h"

#include <fmt/format.h>

#include "base/error.h"

namespace sluice::ops {

void Shape::overflow() {
  fail(ErrorKind::input, "a tensor has more than {} dimensions", kMaxRank);
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ","));
}

namespace {

template <class Pointer>
Pointer advance(Pointer data, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>;
  return static_cast<Byte*>(data) + bytes;
}

template <class Pointer>
Pointer element(const BasicView<Pointer>& view, std::int64_t offset) {
  return advance(view.data, offset * static_cast<std::int64_t>(size_bytes(view.dtype)));
}

}  // namespace

template <class Pointer>
bool BasicView<Pointer>::contiguous() const {
  std::int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

template <class Pointer>
BasicView<Pointer> BasicView<Pointer>::operator[](std::int64_t i) const {
  if (rank() < 2 || i < 0 || i >= shape[0])
    fail(ErrorKind::internal, "index {} into a view of shape {}", i, to_string(shape));
  BasicView result(element(*this, i * strides[0]), dtype, {}, {});
  for (int d = 1; d < rank(); ++d) {
    result.shape.push_back(shape[d]);
    result.strides.push_back(strides[d]);
  }
  return result;
}

template <class Pointer>
BasicView<Pointer> BasicView<Pointer>::columns(std::int64_t begin, std::int64_t count,
                                               const Shape& inner) const {
  if (rank() < 1 || begin < 0 || count < 0 || begin + count > shape.back() || inner.elements() != count)
    fail(ErrorKind::internal, "columns {}+{} as {} of a view of shape {}", begin, count, to_string(inner),
         to_string(shape));
  BasicView result(element(*this, begin), dtype, {}, {});
  for (int d = 0; d + 1 < rank(); ++d) {
    result.shape.push_back(shape[d]);
    result.strides.push_back(strides[d]);
  }
  const Shape inner_strides = contiguous_strides(inner);
  for (int d = 0; d < inner.rank(); ++d) {
    result.shape.push_back(inner[d]);
    result.strides.push_back(inner_strides[d]);
  }
  return result;
}

template <class Pointer>
BasicView<Pointer> BasicView<Pointer>::rows(std::int64_t begin, std::int64_t count) const {
  if (rank() < 1 || begin < 0 || count < 0 || begin + count > shape[0])
    fail(ErrorKind::internal, "rows {}+{} of a view of shape {}", begin, count, to_string(shape));
  BasicView result = *this;
  result.data = element(*this, begin * strides[0]);
  result.shape[0] = count;
  return result;
}

template <class Pointer>
BasicView<Pointer> BasicView<Pointer>::reshaped(const Shape& to) const {
  if (!contiguous() || to.elements() != elements())
    fail(ErrorKind::internal, "a view of shape {} cannot be read as {}", to_string(shape), to_string(to));
  return {data, dtype, to};
}

template struct BasicView<void*>;
template struct BasicView<const void*>;

}  // namespace sluice::ops
