// The Walsh-Hadamard rotation of one vector held by a warp: lane l holds coordinates l, l+32, l+64...
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

// 1 or -1 for coordinate i: bit i%8 of byte i/8 set means -1. Always 1 without signs.
__device__ __forceinline__ int sign_of(const unsigned char* signs, int i) {
  return signs != nullptr && (signs[i / 8] >> (i % 8) & 1) != 0 ? -1 : 1;
}

// x = H x, not normalised. Stages have increasing distance, so in double the sums are exactly the
// reference's.
template <class Real, int kCount>
__device__ __forceinline__ void transform(Real (&x)[kCount]) {
  const int lane = to_int(threadIdx.x) % kWarp;
#pragma unroll
  for (int half = 1; half < kWarp; half *= 2)
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      const Real other = __shfl_xor_sync(0xffffffffu, x[r], half);
      x[r] = (lane & half) != 0 ? other - x[r] : x[r] + other;
    }
#pragma unroll
  for (int half = 1; half < kCount; half *= 2)
#pragma unroll
    for (int r = 0; r < kCount; ++r)
      if ((r & half) == 0) {
        const Real a = x[r];
        const Real b = x[r + half];
        x[r] = a + b;
        x[r + half] = a - b;
      }
}

// Calls f.operator()<D/32>() for a width D of 32, 64 .. 1024.
template <class F>
void with_rotation_width(long long width, F&& f) {
  if (width == 32) return f.template operator()<1>();
  if (width == 64) return f.template operator()<2>();
  if (width == 128) return f.template operator()<4>();
  if (width == 256) return f.template operator()<8>();
  if (width == 512) return f.template operator()<16>();
  f.template operator()<32>();
}

}  // namespace sluice::backend::cuda::cache
