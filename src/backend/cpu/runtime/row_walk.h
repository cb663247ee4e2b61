// Addresses of rows (last dimension) in tensors of any rank and stride.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::backend::cpu {

inline std::int64_t row_count(const ops::Shape& shape) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < shape.rank(); ++d) rows *= shape[d];
  return rows;
}

// Row r in row-major order of the leading dimensions.
template <class Pointer>
Pointer row_at(const ops::BasicView<Pointer>& view, std::int64_t r) {
  std::int64_t offset = 0;
  for (int d = view.rank() - 2; d >= 0; --d) {
    offset += r % view.shape[d] * view.strides[d];
    r /= view.shape[d];
  }
  using Byte = std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>;
  return static_cast<Byte*>(view.data) + offset * static_cast<std::int64_t>(size_bytes(view.dtype));
}

}  // namespace sluice::backend::cpu
