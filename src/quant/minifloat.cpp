#include "quant/minifloat.h"

#include "base/error.h"
#include "quant/bit_stream.h"

namespace sluice::quant {

void decode_minifloat(ops::QuantMode mode, std::int64_t count, const std::byte* words,
                      const std::byte* scales, float* values) {
  if (mode == ops::QuantMode::affine) fail(ErrorKind::internal, "affine weights are no small floats");
  const int bits = mode == ops::QuantMode::mxfp8 ? 8 : 4;
  const std::int64_t group_size = mode == ops::QuantMode::nvfp4 ? 16 : 32;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto code = std::to_integer<std::uint8_t>(scales[i / group_size]);
    const float scale = mode == ops::QuantMode::nvfp4 ? e4m3_to_float(code) : e8m0_to_float(code);
    const std::uint32_t value = read_code(words, i, bits);
    values[i] = (bits == 8 ? e4m3_to_float(static_cast<std::uint8_t>(value)) : e2m1_to_float(value)) * scale;
  }
}

}  // namespace sluice::quant
