#include "layers/device.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::layers {

ops::View Arena::take(ops::DType type, const ops::Shape& shape) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = to_size(shape.elements()) * size_bytes(type);
  const std::size_t at = used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  peak_ = std::max(peak_, used_);
  if (memory_.data() == nullptr) return {nullptr, type, shape};
  if (used_ > memory_.bytes())
    fail(ErrorKind::internal, "the activation arena of {} bytes is too small for {}", memory_.bytes(), used_);
  return {static_cast<std::byte*>(memory_.data()) + at, type, shape};
}

}  // namespace sluice::layers
