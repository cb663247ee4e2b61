// Rotates pair i of every head's first R = 2*M channels, in place, by the angle positions[t] * inv_freq[i]:
// (a, b) becomes (a c - b s, b c + a s) with c and s times mscale. Pairs are (i, i+M) or (2i, 2i+1).
//
// A block rotates some heads of one token. It computes the token's angles once, in shared memory; then each
// thread rotates 16-byte chunks. Bytes: the R channels twice.
#include "sluice/ops/pointwise/rope.h"

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/pointwise/rotary.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::pointwise {

namespace {

constexpr int kPairs = 512;  // angles in shared memory
constexpr int kThreads = 128;

struct RopeCall {
  void* x;
  long long token_stride;
  long long head_stride;
  const float* inv_freq;
  const int* positions;
  long long pairs;
  long long heads;
  long long block_heads;  // heads per block
  long long head_blocks;
  float mscale;
  bool aligned;
};

// V pairs from `first` on: one chunk of each half.
template <class T>
__device__ __forceinline__ void rotate_half(T* head, long long first, const float2* rotations,
                                            const RopeCall& call) {
  constexpr int V = kChunk<T>;
  const long long left = call.pairs - first;
  float a[V];
  float b[V];
  const Chunk<T, V> low = load_chunk<V>(static_cast<const T*>(head) + first, left, call.aligned);
  const Chunk<T, V> high =
      load_chunk<V>(static_cast<const T*>(head) + call.pairs + first, left, call.aligned);
  widen(low, a);
  widen(high, b);
#pragma unroll
  for (int i = 0; i < V; ++i) rotate(a[i], b[i], rotations[i]);
  store_chunk(narrow<T>(a), head + first, left, call.aligned);
  store_chunk(narrow<T>(b), head + call.pairs + first, left, call.aligned);
}

// V/2 pairs from `first` on: one chunk.
template <class T>
__device__ __forceinline__ void rotate_interleaved(T* head, long long first, const float2* rotations,
                                                   const RopeCall& call) {
  constexpr int V = kChunk<T>;
  const long long left = 2 * (call.pairs - first);
  float x[V];
  widen(load_chunk<V>(static_cast<const T*>(head) + 2 * first, left, call.aligned), x);
#pragma unroll
  for (int i = 0; i < V / 2; ++i) rotate(x[2 * i], x[2 * i + 1], rotations[i]);
  store_chunk(narrow<T>(x), head + 2 * first, left, call.aligned);
}

template <class T, bool kHalf>
__global__ void __launch_bounds__(kThreads) rope(RopeCall call) {
  constexpr int kStep = kHalf ? kChunk<T> : kChunk<T> / 2;  // pairs per thread and step
  __shared__ float2 rotations[kPairs];
  const long long token = blockIdx.x / call.head_blocks;
  const long long first_head = blockIdx.x % call.head_blocks * call.block_heads;
  const long long heads = min(call.block_heads, call.heads - first_head);
  wait_for_inputs();
  allow_successor();
  T* x = static_cast<T*>(call.x) + token * call.token_stride + first_head * call.head_stride;
  const int position = call.positions[token];
  for (long long first = 0; first < call.pairs; first += kPairs) {
    const int count = to_int(min(static_cast<long long>(kPairs), call.pairs - first));
    __syncthreads();
    // A chunk that extends past the last pair reads the slots after it, so these are filled, too.
    for (int i = threadIdx.x; i < kPairs; i += kThreads) {
      if (i < count)
        rotations[i] = rotation(position, call.inv_freq[first + i], call.mscale);
      else if (i < count + kStep)
        rotations[i] = {};
    }
    __syncthreads();
    const int chunks = (count + kStep - 1) / kStep;
    for (long long item = threadIdx.x; item < heads * chunks; item += kThreads) {
      const long long head = item / chunks;
      const int at = to_int(item - head * chunks) * kStep;
      T* of_head = x + head * call.head_stride;
      if constexpr (kHalf)
        rotate_half(of_head, first + at, rotations + at, call);
      else
        rotate_interleaved(of_head, first + at, rotations + at, call);
    }
  }
}

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Rope& op) {
  using namespace pointwise;
  const bool half = op.pairing == ops::Pairing::half;
  const long long pairs = op.inv_freq.dim(0);
  const long long heads = op.x.dim(1);
  with_activation(op.x.dtype, [&]<class T>() {
    constexpr int V = kChunk<T>;
    // The rotated channels, or one half of them, as rows of their own.
    const ops::Shape rotated{op.x.dim(0), heads, half ? pairs : 2 * pairs};
    const bool aligned = chunks_aligned(ops::View(op.x.data, op.x.dtype, rotated, op.x.strides), V);
    const long long head_chunks = divide_up<long long>(pairs, half ? V : V / 2);
    const long long block_heads = min(heads, max(1ll, 2 * kThreads / head_chunks));
    const long long head_blocks = divide_up(heads, block_heads);
    const RopeCall call{op.x.data,
                        op.x.strides[0],
                        op.x.strides[1],
                        static_cast<const float*>(op.inv_freq.data),
                        static_cast<const int*>(op.positions.data),
                        pairs,
                        heads,
                        block_heads,
                        head_blocks,
                        static_cast<float>(op.mscale),
                        aligned};
    const Grid grid{dim3(to_unsigned(op.x.dim(0) * head_blocks)), dim3(kThreads)};
    if (half)
      launch(context, rope<T, true>, grid, call);
    else
      launch(context, rope<T, false>, grid, call);
  });
}

}  // namespace sluice::backend::cuda
