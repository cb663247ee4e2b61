// NVIDIA's NVFP4: E2M1 values in groups of 16 that share an E4M3 scale.
#pragma once

#include "quant/format.h"
#include "quant/minifloat.h"

namespace sluice::quant {

inline constexpr int kNvfp4Bits[] = {4};
inline constexpr int kNvfp4Groups[] = {16};
inline constexpr Format kNvfp4 = {
    .mode = ops::QuantMode::nvfp4,
    .name = "nvfp4",
    .bits = kNvfp4Bits,
    .group_sizes = kNvfp4Groups,
    .scales = Plane::bytes,
    .byte_scales = ScaleType::e4m3,
    .storage = [](int) { return Storage::fp4; },
    .value = minifloat_value<e2m1_to_float, e4m3_to_float>,
};

}  // namespace sluice::quant
