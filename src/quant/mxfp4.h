// OCP's MXFP4: E2M1 values in groups of 32 that share a power of two.
#pragma once

#include "quant/format.h"
#include "quant/minifloat.h"

namespace sluice::quant {

inline constexpr int kMxfp4Bits[] = {4};
inline constexpr int kMxfp4Groups[] = {32};
inline constexpr Format kMxfp4 = {
    .mode = ops::QuantMode::mxfp4,
    .name = "mxfp4",
    .bits = kMxfp4Bits,
    .group_sizes = kMxfp4Groups,
    .scales = Plane::bytes,
    .byte_scales = ScaleType::e8m0,
    .storage = [](int) { return Storage::fp4; },
    .value = minifloat_value<e2m1_to_float, e8m0_to_float>,
};

}  // namespace sluice::quant
