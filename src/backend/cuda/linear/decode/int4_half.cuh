// 4-bit codes and their inputs as FP16. The bits of a code, read as an FP16 number, are code * 2^-24, and
// those of a code shifted by four are 16 * code * 2^-24. Tensor cores handle such subnormal numbers, so
// unpacking takes five integer instructions per eight codes. Inputs are scaled by a power of two per tile of
// 256, which brings the largest below 2^15: only inputs that are 2^-30 times smaller are rounded.
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

inline constexpr float kHalfCode = 16777216.0f;  // a code divided by the FP16 number with its bits

// Eight codes as four pairs; the second and the fourth pair are 16 times too large.
__device__ __forceinline__ void unpack_halves(unsigned word, unsigned (&pairs)[4]) {
  const unsigned upper = word >> 8;
  pairs[0] = word & 0x000f000fu;
  pairs[1] = word & 0x00f000f0u;
  pairs[2] = upper & 0x000f000fu;
  pairs[3] = upper & 0x00f000f0u;
}

// c += a b in FP16: 16 rows of weights by 8 columns of inputs over 16 values.
__device__ __forceinline__ void multiply_halves(float (&c)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// The element-wise maximum of the magnitudes of two pairs of BF16, as bits.
__device__ __forceinline__ unsigned larger_magnitudes(unsigned a, unsigned b) {
  return __vmaxu2(a & 0x7fff7fffu, b & 0x7fff7fffu);
}
__device__ __forceinline__ unsigned larger_magnitudes(const uint4& eight) {
  return __vmaxu2(larger_magnitudes(eight.x, eight.y), larger_magnitudes(eight.z, eight.w));
}

// The power of two by which the inputs of a tile are scaled before they are converted to FP16.
class HalfScale {
 public:
  // `largest`: two BF16 magnitudes, one of which is the tile's largest. Infinities and NaN are preserved, and
  // other numbers stay finite.
  __device__ __forceinline__ explicit HalfScale(unsigned largest) {
    const int exponent = to_int(max(largest & 0xffffu, largest >> 16) >> 7);
    up_ = min(141 - exponent, 126);
  }
  // The factor that undoes the scaling in results.
  __device__ __forceinline__ float back() const { return power(-up_); }
  // Eight inputs, in the order of the pairs of codes.
  __device__ __forceinline__ uint4 halves(const uint4& eight) const {
    const float k = power(up_);
    const float sixteenth = k * 0.0625f;
    return make_uint4(pair(eight.x, k), pair(eight.y, sixteenth), pair(eight.z, k), pair(eight.w, sixteenth));
  }

 private:
  __device__ static __forceinline__ float power(int exponent) {
    return __uint_as_float(to_unsigned(127 + exponent) << 23);
  }
  __device__ static __forceinline__ unsigned pair(unsigned bf16, float k) {
    const __half2 both =
        __floats2half2_rn(__uint_as_float(bf16 << 16) * k, __uint_as_float(bf16 & 0xffff0000u) * k);
    return *reinterpret_cast<const unsigned*>(&both);
  }

  int up_;
};

}  // namespace sluice::backend::cuda::linear::decode
