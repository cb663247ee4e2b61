#include "experts/float_rows.h"

#include <cstring>

namespace sluice::experts {

void to_floats(const std::byte* from, ops::DType type, std::span<float> to) {
  if (type == ops::DType::f32) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  const auto* in = reinterpret_cast<const ops::BFloat16*>(from);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = ops::to_float(in[i]);
}

void from_floats(std::span<const float> from, ops::DType type, std::byte* to) {
  if (type == ops::DType::f32) {
    std::memcpy(to, from.data(), from.size_bytes());
    return;
  }
  auto* out = reinterpret_cast<ops::BFloat16*>(to);
  for (std::size_t i = 0; i < from.size(); ++i) out[i] = ops::to_bfloat16(from[i]);
}

}  // namespace sluice::experts
