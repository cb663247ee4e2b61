// Element access for the reference backend: every float type is read and written as double.
#pragma once

#include <cstdint>

#include "sluice/ops/view.h"
#include "tensor/element.h"

namespace sluice::backend::reference {

// The offset of the element at the given indices, one per dimension.
template <class AnyView, class... Index>
std::int64_t offset(const AnyView& view, Index... index) {
  std::int64_t at = 0;
  int d = 0;
  ((at += static_cast<std::int64_t>(index) * view.strides[d++]), ...);
  return at;
}

template <class... Index>
double get(const ops::ConstView& view, Index... index) {
  return ops::load(view.data, view.dtype, offset(view, index...));
}

template <class... Index>
std::int64_t get_id(const ops::ConstView& view, Index... index) {
  return ops::read<std::int32_t>(view.data, offset(view, index...));
}

template <class... Index>
void set(const ops::View& view, double value, Index... index) {
  const std::int64_t at = offset(view, index...);
  if (view.dtype == ops::DType::f32)
    static_cast<float*>(view.data)[at] = static_cast<float>(value);
  else
    static_cast<ops::BFloat16*>(view.data)[at] = ops::to_bfloat16(static_cast<float>(value));
}

}  // namespace sluice::backend::reference
