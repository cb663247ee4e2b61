// The address of an element or row of a strided view.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::backend::cpu {

// The address of the sub-tensor at the given leading indices.
template <class Pointer, class... Index>
Pointer address(const ops::BasicView<Pointer>& view, Index... index) {
  std::int64_t offset = 0;
  int d = 0;
  ((offset += static_cast<std::int64_t>(index) * view.strides[d++]), ...);
  using Byte = std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>;
  return static_cast<Byte*>(view.data) + offset * static_cast<std::int64_t>(size_bytes(view.dtype));
}

}  // namespace sluice::backend::cpu
