#include "sluice/ops/quantize.h"

#include "base/error.h"
#include "quant/affine.h"

namespace sluice::ops {

void quantize_affine(const ConstView& values, int bits, int group_size, void* words, void* scales,
                     void* biases) {
  if (!values.present() || values.elements() == 0)
    fail(ErrorKind::input, "there is nothing to quantise: the values have shape {}", to_string(values.shape));
  const std::int64_t columns = values.shape.back();
  quant::encode_affine({.bits = bits, .group_size = group_size},
                       {.type = values.dtype, .rows = values.elements() / columns, .columns = columns},
                       static_cast<const std::byte*>(values.data), static_cast<std::byte*>(words),
                       static_cast<std::byte*>(scales), static_cast<std::byte*>(biases));
}

}  // namespace sluice::ops
