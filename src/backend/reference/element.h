// Element access for the reference backend: every float type is read and written as double.
#pragma once

#include <cstdint>
#include <cstring>

#include "sluice/ops/view.h"

namespace sluice::backend::reference {

// Works at any byte address: weights may lie unaligned in a mapped file.
template <class T>
T read(const void* data, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

inline double load(const void* data, ops::DType type, std::int64_t i) {
  switch (type) {
    case ops::DType::f32:
      return read<float>(data, i);
    case ops::DType::bf16:
      return ops::to_float(read<ops::BFloat16>(data, i));
    case ops::DType::f16:
      return ops::to_float(read<ops::Float16>(data, i));
    case ops::DType::i32:
      return read<std::int32_t>(data, i);
    case ops::DType::u32:
      return read<std::uint32_t>(data, i);
    case ops::DType::u8:
      return read<std::uint8_t>(data, i);
  }
  return 0;
}

// The element at the given indices, one a dimension.
template <class AnyView, class... Index>
std::int64_t offset(const AnyView& view, Index... index) {
  std::int64_t at = 0;
  int d = 0;
  ((at += static_cast<std::int64_t>(index) * view.strides[d++]), ...);
  return at;
}

template <class... Index>
double get(const ops::ConstView& view, Index... index) {
  return load(view.data, view.dtype, offset(view, index...));
}

template <class... Index>
std::int64_t get_id(const ops::ConstView& view, Index... index) {
  return read<std::int32_t>(view.data, offset(view, index...));
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
