// rope(x * rsqrt(mean(x^2) + eps) * weight) of a head, by one warp, rounded once.
//
// A row of at most one chunk per lane stays in registers, and lanes exchange the values of a pair by
// shuffles; a longer row is kept in shared memory in F32 between its sum of squares and its rotation. The
// lanes compute the angles meanwhile. Products and sums are written as explicit intrinsics, so that all
// kernels that rotate heads get the same bits.
#pragma once

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/pointwise/norm.cuh"
#include "backend/cuda/pointwise/rotary.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"
#include "sluice/ops/pointwise/qk_norm_rope.h"

namespace sluice::backend::cuda::pointwise {

struct TurnedHeads {
  void* data;
  NormWeight weight;
  long long token_stride;
  long long head_stride;
  int heads;
  bool aligned;

  TurnedHeads(const ops::View& x, const ops::ConstView& of)
      : data(x.data),
        weight(of, 16 / to_int(ops::size_bytes(x.dtype))),
        token_stride(x.strides[0]),
        head_stride(x.strides[1]),
        heads(to_int(x.dim(1))),
        aligned(chunks_aligned(x, 16 / to_int(ops::size_bytes(x.dtype)))) {}
  template <class T>
  __device__ __forceinline__ T* row(long long token, int head) const {
    return static_cast<T*>(data) + token * token_stride + head * head_stride;
  }
};

struct NormRope {
  TurnedHeads queries;
  TurnedHeads keys;
  const float* inv_freq;
  const int* positions;
  int tokens;
  int width;
  int pairs;
  float eps;
  float mscale;

  explicit NormRope(const ops::QkNormRope& op)
      : queries(op.q, op.q_weight),
        keys(op.k, op.k_weight),
        inv_freq(static_cast<const float*>(op.inv_freq.data)),
        positions(static_cast<const int*>(op.positions.data)),
        tokens(to_int(op.q.dim(0))),
        width(to_int(op.q.dim(2))),
        pairs(to_int(op.inv_freq.dim(0))),
        eps(static_cast<float>(op.eps)),
        mscale(static_cast<float>(op.mscale)) {}
  // Number of float2 in shared memory that a warp needs.
  __host__ __device__ int warp_room() const { return pairs + (width + 1) / 2; }
};

// 1 / sqrt(mean + eps) of a row whose squares leave the range of F32.
__device__ __forceinline__ float far_factor(const float* row, int width, float eps) {
  double sum = 0;
  for (int i = to_int(threadIdx.x) % kWarp; i < width; i += kWarp)
    sum += static_cast<double>(row[i]) * row[i];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return static_cast<float>(1 / sqrt(sum / width + eps));
}

__device__ __forceinline__ bool near(float squares) {
  return squares > 1e-25f && squares < 1e38f;
}

// Computes `pairs` rotations of a token into the warp's shared memory.
__device__ __forceinline__ void find_rotations(const NormRope& call, int token, float2* rotations) {
  const int position = call.positions[token];
  for (int i = to_int(threadIdx.x) % kWarp; i < call.pairs; i += kWarp)
    rotations[i] = rotation(position, call.inv_freq[i], call.mscale);
}

// `value` rotated, where `other` is the other value of its pair.
__device__ __forceinline__ float turned(float value, float other, bool second, float2 by) {
  return fmaf(value, by.x, __fmul_rn(second ? other : -other, by.y));
}

// For rows of at most one chunk per lane, whose pairs are whole chunks apart.
template <class T, class Store>
__device__ __forceinline__ void turn_short_head(const NormRope& call, const TurnedHeads& side, const T* x,
                                                int token, float2* room, const Store& store) {
  constexpr int V = kChunk<T>;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int at = lane * V;
  const bool inside = at < call.width;
  float values[V] = {};
  WeightChunk<V> weight{};
  if (inside) {
    widen(load_chunk<V>(x + at, call.width - at, side.aligned), values);
    weight = side.weight.template load<V>(at, call.width);
  }
  find_rotations(call, token, room);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < V; ++i) squares = fmaf(values[i], values[i], squares);
  squares = warp_sum(squares);
  __syncwarp();
  float factor = rsqrtf(squares / static_cast<float>(call.width) + call.eps);
  if (!near(squares)) {
    auto* row = reinterpret_cast<float*>(room + call.pairs);
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (inside) row[at + i] = values[i];
    __syncwarp();
    factor = far_factor(row, call.width, call.eps);
  }
#pragma unroll
  for (int i = 0; i < V; ++i) values[i] *= factor;
  side.weight.apply(weight, values);
  const bool second = at >= call.pairs;
  const int partner = second ? lane - call.pairs / V : lane + call.pairs / V;
  const float2* rotations = room + (second ? at - call.pairs : at);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const float other = __shfl_sync(0xffffffffu, values[i], partner);
    if (at < 2 * call.pairs) values[i] = turned(values[i], other, second, rotations[i]);
  }
  if (inside) store(at, narrow<T>(values));
  __syncwarp();  // before the warp's next head
}

template <class T, class Store>
__device__ __forceinline__ void turn_long_head(const NormRope& call, const TurnedHeads& side, const T* x,
                                               int token, float2* room, const Store& store) {
  constexpr int V = kChunk<T>;
  const int lane = to_int(threadIdx.x) % kWarp;
  auto* row = reinterpret_cast<float*>(room + call.pairs);
  float squares = 0;
  for (int at = lane * V; at < call.width; at += kWarp * V) {
    float values[V];
    widen(load_chunk<V>(x + at, call.width - at, side.aligned), values);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      squares = fmaf(values[i], values[i], squares);
      if (at + i < call.width) row[at + i] = values[i];
    }
  }
  find_rotations(call, token, room);
  squares = warp_sum(squares);
  __syncwarp();
  float factor = rsqrtf(squares / static_cast<float>(call.width) + call.eps);
  if (!near(squares)) factor = far_factor(row, call.width, call.eps);
  const Parameter weight{side.weight.data, side.weight.type};
  const auto normed = [&](int i) { return row[i] * factor * weight[i]; };
  for (int at = lane * V; at < call.width; at += kWarp * V) {
    float values[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const int i = at + j;
      if (i >= call.width) break;
      values[j] = normed(i);
      if (i >= 2 * call.pairs) continue;
      const bool second = i >= call.pairs;
      const int of_pair = second ? i - call.pairs : i;
      values[j] = turned(values[j], normed(second ? of_pair : i + call.pairs), second, room[of_pair]);
    }
    store(at, narrow<T>(values));
  }
  __syncwarp();  // before the warp's next head
}

// Calls store(at, chunk) for each chunk of the head. `room` is the warp's own.
template <class T, class Store>
__device__ __forceinline__ void turn_head(const NormRope& call, const TurnedHeads& side, int token, int head,
                                          float2* room, const Store& store) {
  constexpr int V = kChunk<T>;
  const T* x = side.row<T>(token, head);
  if (call.width <= kWarp * V && call.width % V == 0 && call.pairs % V == 0)
    turn_short_head<T>(call, side, x, token, room, store);
  else
    turn_long_head<T>(call, side, x, token, room, store);
}

// The same in place.
template <class T>
__device__ __forceinline__ void turn_head(const NormRope& call, const TurnedHeads& side, int token, int head,
                                          float2* room) {
  T* x = side.row<T>(token, head);
  turn_head<T>(call, side, token, head, room, [&](int at, const Chunk<T, kChunk<T>>& chunk) {
    store_chunk(chunk, x + at, call.width - at, side.aligned);
  });
}

}  // namespace sluice::backend::cuda::pointwise
