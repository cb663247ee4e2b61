// Copying rows between F32 and BF16.
#pragma once

#include <algorithm>
#include <cstring>

#include "sluice/ops/view.h"

namespace sluice::backend::cpu {

// Copies columns [from_column, from_column + count) of one row; rows are given by their addresses.
inline void copy_row(const void* from, ops::DType from_type, std::int64_t from_column, void* to,
                     ops::DType to_type, std::int64_t count) {
  const auto* source =
      static_cast<const std::byte*>(from) + from_column * static_cast<std::int64_t>(size_bytes(from_type));
  const std::size_t length = count;
  if (from_type == to_type) {
    std::memcpy(to, source, length * size_bytes(to_type));
  } else if (to_type == ops::DType::f32) {
    const auto* narrow = reinterpret_cast<const ops::BFloat16*>(source);
    std::transform(narrow, narrow + length, static_cast<float*>(to),
                   [](ops::BFloat16 x) { return ops::to_float(x); });
  } else {
    const auto* wide = reinterpret_cast<const float*>(source);
    std::transform(wide, wide + length, static_cast<ops::BFloat16*>(to), ops::to_bfloat16);
  }
}

}  // namespace sluice::backend::cpu
