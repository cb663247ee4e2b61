// A row of inputs that every block of a product normalises itself, instead of a launch that does so once.
#pragma once

#include "backend/cuda/device/vector_access.cuh"
#include "backend/cuda/linear/decode/input_norm.h"
#include "backend/cuda/linear/decode/plan.h"
#include "backend/cuda/pointwise/norm.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// Thread t holds chunks t and t + 256. Squares are summed in the order of pointwise/norm.cuh: a thread of
// that kernel adds up two chunks, its warp reduces them, and the warps' sums are added in order.
class NormedRow {
 public:
  static constexpr int kHeld = 2;
  static constexpr int kThreads = kDecodeWarps * kWarp;
  static_assert(kHeld * kThreads == kMostNormChunks);

  // Loads the weights, which no kernel writes.
  __device__ __forceinline__ explicit NormedRow(const InputNorm& norm) : norm_(norm) {
    weight_.data = norm.weight;
    weight_.type = norm.weight_type;
    weight_.aligned = true;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) factors_[i] = weight_.load<kV>(chunk(i) * kV, norm.chunks * kV);
  }
  __device__ __forceinline__ int chunk(int i) const {
    return to_int(threadIdx.x) + i * kThreads;
  }
  __device__ __forceinline__ bool inside(int i) const {
    return chunk(i) < norm_.chunks;
  }

  // The thread's chunks of the normalised row. To be called by the whole block.
  __device__ __forceinline__ void load(uint4 (&out)[kHeld]) const {
    extern __shared__ __align__(16) std::byte shared[];
    auto* const of_chunks = reinterpret_cast<double*>(shared + norm_.memory);
    double* const of_warps = of_chunks + kMostNormChunks;
    Chunk<Bf16, kV> raw[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (inside(i)) raw[i] = load_chunk<kV>(static_cast<const Bf16*>(norm_.x) + chunk(i) * kV, kV, true);
    float x[kHeld][kV] = {};
    float squares[kHeld] = {};
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (inside(i)) {
        widen(raw[i], x[i]);
        squares[i] = pointwise::sum_of_squares<float>(x[i]);
      }
    const float sum =
        row_sum(squares, reinterpret_cast<float*>(of_chunks), reinterpret_cast<float*>(of_warps));
    float factor = rsqrtf(sum / static_cast<float>(norm_.divisor) + static_cast<float>(norm_.eps)) * 1.0f;
    if (!(sum > 1e-25f && sum < 1e38f)) {
      double exact[kHeld] = {};
#pragma unroll
      for (int i = 0; i < kHeld; ++i) exact[i] = pointwise::sum_of_squares<double>(x[i]);
      __syncthreads();
      factor =
          static_cast<float>(1.0 / sqrt(row_sum(exact, of_chunks, of_warps) / norm_.divisor + norm_.eps));
    }
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
#pragma unroll
      for (float& value : x[i]) value *= factor;
      weight_.apply(factors_[i], x[i]);
      const Chunk<Bf16, kV> normed = narrow<Bf16>(x[i]);
      out[i] = *reinterpret_cast<const uint4*>(&normed);
      if (inside(i) && blockIdx.x == 0 && blockIdx.y == 0)
        store_chunk(normed, static_cast<Bf16*>(norm_.out) + chunk(i) * kV, kV, true);
    }
  }

 private:
  static constexpr int kV = kChunk<Bf16>;

  template <class Sum>
  __device__ __forceinline__ Sum row_sum(const Sum (&squares)[kHeld], Sum* of_chunks, Sum* of_warps) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (inside(i)) of_chunks[chunk(i)] = squares[i];
    __syncthreads();
    const int thread = threadIdx.x;
    if (thread < norm_.threads) {
      Sum sum = of_chunks[thread];
      if (thread + norm_.threads < norm_.chunks) sum += of_chunks[thread + norm_.threads];
      sum = warp_sum(sum);
      if (thread % kWarp == 0) of_warps[thread / kWarp] = sum;
    }
    __syncthreads();
    Sum sum = 0;
    for (int w = 0; w < norm_.threads / kWarp; ++w) sum += of_warps[w];
    return sum;
  }

  const InputNorm& norm_;
  pointwise::NormWeight weight_;
  pointwise::WeightChunk<kV> factors_[kHeld];
};

}  // namespace sluice::backend::cuda::linear::decode
