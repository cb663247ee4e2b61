// Reductions over the lanes of a warp and the warps of a block, in a fixed order; every lane gets the result.
#pragma once

#include "base/integer_cast.h"

namespace sluice::backend::cuda {

inline constexpr int kWarp = 32;

template <class Number>
__device__ __forceinline__ Number warp_sum(Number x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

// `partial` is shared memory of one float per warp; the block size must be a multiple of the warp size.
__device__ __forceinline__ float block_sum(float x, float* partial) {
  x = warp_sum(x);
  const int warps = to_int(blockDim.x) / kWarp;
  if (warps == 1) return x;
  __syncthreads();
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += partial[w];
  return sum;
}

}  // namespace sluice::backend::cuda
