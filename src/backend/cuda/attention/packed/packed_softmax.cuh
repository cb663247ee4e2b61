// The softmax of the decode kernel for packed caches: a warp's running sums, and the weights that two warps
// exchange.
#pragma once

#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/packed/packed_format.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

inline constexpr float kLowest = -1e30f;  // below every maximum, and finite
inline constexpr float kSlack = 4;        // weights may grow to 2^kSlack before the sums are rescaled

// Reductions over the lanes of one head, which have different cache rows.
__device__ __forceinline__ float rows_max(float x) {
#pragma unroll
  for (int step = 4; step < kWarp; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
__device__ __forceinline__ float rows_sum(float x) {
#pragma unroll
  for (int step = 4; step < kWarp; step *= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// A lane's rows l/4 and l/4 + 8 of a piece.
struct RowPair {
  float key[2];       // norms
  float value[2];     // norms over the root of the width
  float exponent[2];  // log2 of them
  bool seen[2];
};

// The pair of warps, and the memory through which it exchanges weights and maxima.
struct Pair {
  uint2* weights;  // [2][warps][tiles][lane]
  float2* peaks;   // [2][warps][tiles][4]
  int warp;
  int barrier;

  __device__ __forceinline__ void wait() const { asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory"); }
};

// The factors of heads 2(l%4) and the next one are moved to the lanes of head l/4, duplicated.
__device__ __forceinline__ __half2 factor_of_column(const float (&factor)[2]) {
  const int column = to_int(threadIdx.x) % kWarp / 4;
  const float even = __shfl_sync(0xffffffffu, factor[0], column / 2);
  const float odd = __shfl_sync(0xffffffffu, factor[1], column / 2);
  return __float2half2_rn(column % 2 == 0 ? even : odd);
}
__device__ __forceinline__ void multiply(uint2& weights, __half2 factor) {
  auto* pairs = reinterpret_cast<__half2*>(&weights);
  pairs[0] = __hmul2(pairs[0], factor);
  pairs[1] = __hmul2(pairs[1], factor);
}

// A warp's softmax: sums and totals in units of 2^maximum, for heads 2(l%4) and the next one of each tile.
// The sums are over the pair's rows, for half of the coordinates; the totals are over the warp's own rows.
template <int kHalfSteps, int kTiles, int kWarps>
struct Stream {
  Sums sums[kTiles][kHalfSteps];
  float maximum[kTiles][2];  // of the pair
  float total[kTiles][2];    // over the lane's own rows

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (Sums& one : sums[t]) one = {};
      maximum[t][0] = maximum[t][1] = kLowest;
      total[t][0] = total[t][1] = 0;
    }
  }

  // Turns scores of the warp's 16 rows into the weights (right operands) of the pair's 32 rows.
  __device__ __forceinline__ void weigh(Sums (&scores)[kTiles], const float (&scale)[kTiles][2],
                                        const RowPair& rows, const Pair& pair, int turn,
                                        uint2 (&weights)[2][kTiles]) {
    const int lane = to_int(threadIdx.x) % kWarp;
    const int side = pair.warp % 2;
    float peak[kTiles][2];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const uint2 own = own_weights(t, scores[t], scale[t], rows, peak[t]);
      const int at = (turn * kWarps + pair.warp) * kTiles + t;
      pair.weights[at * kWarp + lane] = own;
      if (lane < 4) pair.peaks[at * 4 + lane] = make_float2(peak[t][0], peak[t][1]);
    }
    pair.wait();
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const int at = (turn * kWarps + (pair.warp & ~1) + s) * kTiles + t;
        weights[s][t] = pair.weights[at * kWarp + lane];
      }
      const float2 other = pair.peaks[((turn * kWarps + (pair.warp ^ 1)) * kTiles + t) * 4 + lane % 4];
      const bool raised = peak[t][0] != maximum[t][0] || peak[t][1] != maximum[t][1] ||
                          other.x != maximum[t][0] || other.y != maximum[t][1];
      if (__any_sync(0xffffffffu, raised)) raise(t, peak[t], {other.x, other.y}, side, weights);
    }
  }

  __device__ __forceinline__ void scale_sums(int t, const float (&factor)[2]) {
#pragma unroll
    for (Sums& one : sums[t])
#pragma unroll
      for (int i = 0; i < 4; ++i) one.at[i] *= factor[i % 2];
  }

 private:
  // The weights and totals are in units of 2^peak, which is the maximum unless the scores exceed it.
  __device__ __forceinline__ uint2 own_weights(int t, Sums scores, const float (&scale)[2],
                                               const RowPair& rows, float (&peak)[2]) {
    bool higher = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores.at[i] = rows.seen[i / 2] ? scores.at[i] * (scale[i % 2] * rows.key[i / 2]) : -INFINITY;
      higher |= scores.at[i] + rows.exponent[i / 2] > maximum[t][i % 2] + kSlack;
    }
    peak[0] = maximum[t][0];
    peak[1] = maximum[t][1];
    if (__any_sync(0xffffffffu, higher)) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float top = fmaxf(scores.at[h] + rows.exponent[0], scores.at[2 + h] + rows.exponent[1]);
        peak[h] = rows_max(fmaxf(peak[h], top));
        total[t][h] *= exp2_approx(maximum[t][h] - peak[h]);
      }
    }
    float weights[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float weight = exp2_approx(scores.at[i] - peak[i % 2]);
      total[t][i % 2] += weight;
      weights[i] = weight * rows.value[i / 2];
    }
    return {transpose_matrix(half_pair(weights[0], weights[1])),
            transpose_matrix(half_pair(weights[2], weights[3]))};
  }

  // Rescales everything in units of the old maximum or of either peak to the larger peak.
  __device__ __forceinline__ void raise(int t, const float (&own)[2], const float (&other)[2], int side,
                                        uint2 (&weights)[2][kTiles]) {
    float old_factor[2];
    float own_factor[2];
    float other_factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float larger = fmaxf(own[h], other[h]);
      old_factor[h] = exp2_approx(maximum[t][h] - larger);
      own_factor[h] = exp2_approx(own[h] - larger);
      other_factor[h] = exp2_approx(other[h] - larger);
      maximum[t][h] = larger;
      total[t][h] *= own_factor[h];
    }
    scale_sums(t, old_factor);
    const __half2 factors[2] = {factor_of_column(own_factor), factor_of_column(other_factor)};
    multiply(weights[0][t], side == 0 ? factors[0] : factors[1]);
    multiply(weights[1][t], side == 0 ? factors[1] : factors[0]);
  }
};

}  // namespace sluice::backend::cuda::attention::packed
