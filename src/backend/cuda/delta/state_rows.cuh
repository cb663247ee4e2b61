// Some rows of a state of the gated delta rule, in a warp's registers. Rows of a state [Dv,Dk] are
// independent: row i computes
//   u = beta (v_i - e^g S_i.k);  out_i = e^g S_i.q + u k.q;  S_i = e^g S_i + u k
// with Dk distributed over the lanes, kPer elements each, in groups of kVector neighbours. Both dot products
// of a token are summed over the lanes in one butterfly reduction for all rows, after which each row's sums
// are in 32 / kRows lanes. The order of a sum does not depend on kRows.
#pragma once

#include "backend/cuda/device/vector_access.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

template <int kRows, int kPer, int kVector>
struct StateRows {
  static_assert(kRows == 8 || kRows == 16);
  static constexpr int kLanes = kWarp / kRows;  // per row
  float s[kRows][kPer];

  // `rows` is the lane's position in the first row.
  __device__ __forceinline__ void load(const float* rows, long long stride) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int i = 0; i < kPer; i += kVector)
        load_vector(rows + r * stride + i * kWarp, reinterpret_cast<float(&)[kVector]>(s[r][i]));
  }
  __device__ __forceinline__ void store(float* rows, long long stride) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int i = 0; i < kPer; i += kVector)
        store_vector(rows + r * stride + i * kWarp, reinterpret_cast<const float(&)[kVector]>(s[r][i]));
  }
  // Computes one token; `value` and the result are those of row lane / kLanes.
  __device__ __forceinline__ float step(const float (&k)[kPer], const float (&q)[kPer], float value,
                                        float decay, float beta) {
    const int lane = to_int(threadIdx.x) % kWarp;
    float key_query = 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i) key_query += k[i] * q[i];
    key_query = warp_sum(key_query);
    float sums[2 * kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      sums[2 * r] = 0;
      sums[2 * r + 1] = 0;
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        sums[2 * r] += s[r][i] * k[i];
        sums[2 * r + 1] += s[r][i] * q[i];
      }
    }
    // The first half of a row's lanes have S.k, the others S.q.
    const float mine = sum_lanes(sums, lane);
    const float other = __shfl_xor_sync(0xffffffffu, mine, kLanes / 2);
    const bool has_key = (lane & (kLanes / 2)) == 0;
    const float update = beta * (value - decay * (has_key ? mine : other));
    const float out = decay * (has_key ? other : mine) + update * key_query;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float u = __shfl_sync(0xffffffffu, update, kLanes * r);
#pragma unroll
      for (int i = 0; i < kPer; ++i) s[r][i] = u * k[i] + decay * s[r][i];
    }
    return out;
  }

 private:
  // Sums x[i] over the lanes for every i; lane l returns the sum of x[2 * l / kLanes].
  template <int kHalf = kRows>
  static __device__ __forceinline__ float sum_lanes(float (&x)[2 * kRows], int lane) {
    constexpr int kStep = kHalf * kLanes / 2;
    const bool upper = (lane & kStep) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float low = x[i];
      const float high = x[i + kHalf];
      x[i] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, kStep);
    }
    if constexpr (kHalf > 1)
      return sum_lanes<kHalf / 2>(x, lane);
    else if constexpr (kStep > 1)
      return x[0] + __shfl_xor_sync(0xffffffffu, x[0], 1);
    else
      return x[0];
  }
};

}  // namespace sluice::backend::cuda::delta
