// The online softmax of two query rows per lane, with scores in units of log2. In the layout of the
// accumulators, values 4g and 4g + 1 are of the lane's first row, 4g + 2 and 4g + 3 of the second.
#pragma once

#include "backend/cuda/attention/mma_tile.cuh"

namespace sluice::backend::cuda::attention {

struct OnlineSoftmax {
  // Factors for rescaling the sums so far.
  struct Factors {
    float at[2];
    __device__ __forceinline__ bool ones() const { return at[0] == 1.0f && at[1] == 1.0f; }
  };

  float maximum[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};  // over the lane's own columns

  // Turns scores into weights.
  template <int kCount>
  __device__ __forceinline__ Factors weigh(float (&scores)[kCount]) {
    Factors factors;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = maximum[h];
#pragma unroll
      for (int i = 2 * h; i < kCount; i += 4) largest = fmaxf(largest, fmaxf(scores[i], scores[i + 1]));
      largest = quad_max(largest);
      const float base = largest == -INFINITY ? 0.0f : largest;
      factors.at[h] = maximum[h] == largest ? 1.0f : exp2_approx(maximum[h] - base);
      maximum[h] = largest;
      total[h] *= factors.at[h];
#pragma unroll
      for (int i = 2 * h; i < kCount; i += 4)
#pragma unroll
        for (int j = i; j < i + 2; ++j) {
          scores[j] = exp2_approx(scores[j] - base);
          total[h] += scores[j];
        }
    }
    return factors;
  }
  template <int kCount>
  static __device__ __forceinline__ void rescale(float (&sums)[kCount], const Factors& factors) {
    if (__all_sync(0xffffffffu, factors.ones())) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] *= factors.at[i / 2 % 2];
  }
};

template <int kCount>
__device__ __forceinline__ float (&as_floats(Sums (&sums)[kCount]))[4 * kCount] {
  return reinterpret_cast<float(&)[4 * kCount]>(sums);
}

// Adds the weighted sums of values for a warp's 16 query rows, for kernels with mma.sync.
template <int kWidth>
struct SoftmaxSums : OnlineSoftmax {
  Sums sums[kWidth / 8];

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (Sums& one : sums) one = {};
    maximum[0] = maximum[1] = -INFINITY;
    total[0] = total[1] = 0;
  }
  __device__ __forceinline__ void rescale_sums(const Factors& factors) {
    rescale(as_floats(sums), factors);
  }
};

}  // namespace sluice::backend::cuda::attention
