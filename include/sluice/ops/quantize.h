// Packs weights as MLX checkpoints store them.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::ops {

// MLX's affine quantisation of the rows of contiguous F32, BF16 or F16 values [..,K], bit for bit. `words`
// holds K * bits / 8 bytes per row, `scales` and `biases` K / group_size values each, of the type of
// `values`.
void quantize_affine(const ConstView& values, int bits, int group_size, void* words, void* scales,
                     void* biases);

}  // namespace sluice::ops
