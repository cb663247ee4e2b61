// One element of a tensor of any type, at any byte address: weights are unaligned in mapped files.
#pragma once

#include <cstdint>
#include <cstring>

#include "sluice/ops/dtype.h"

namespace sluice::ops {

template <class T>
T read(const void* data, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

// As a double, which represents every value of every type.
inline double load(const void* data, DType type, std::int64_t i) {
  switch (type) {
    case DType::f32:
      return read<float>(data, i);
    case DType::bf16:
      return to_float(read<BFloat16>(data, i));
    case DType::f16:
      return to_float(read<Float16>(data, i));
    case DType::i32:
      return read<std::int32_t>(data, i);
    case DType::u32:
      return read<std::uint32_t>(data, i);
    case DType::u8:
      return read<std::uint8_t>(data, i);
  }
  return 0;
}

}  // namespace sluice::ops
