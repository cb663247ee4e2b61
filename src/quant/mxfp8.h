// OCP's MXFP8: E4M3 values in groups of 32 that share a power of two.
#pragma once

#include "quant/format.h"
#include "quant/minifloat.h"

namespace sluice::quant {

inline constexpr int kMxfp8Bits[] = {8};
inline constexpr int kMxfp8Groups[] = {32};
inline constexpr Format kMxfp8 = {
    .mode = ops::QuantMode::mxfp8,
    .name = "mxfp8",
    .bits = kMxfp8Bits,
    .group_sizes = kMxfp8Groups,
    .scales = Plane::bytes,
    .byte_scales = ScaleType::e8m0,
    .storage = [](int) { return Storage::fp8; },
    .value = minifloat_value<e4m3_to_float, e8m0_to_float>,
};

}  // namespace sluice::quant
