// The common part of the norms: out = x * scale * rsqrt(sum(x^2)/divisor + eps); each op adds its own inputs
// and outputs.
//
// A short row (a head) is computed by a power of two of lanes of one warp, a longer one by a block. It is
// read once and kept in registers between the two passes, one or two chunks per thread; only rows of more
// than 1024 chunks are read twice. A block computes several rows, so it reads a weight once, before the
// inputs are available. The order of a row's sum depends only on its width and type. Squares that leave the
// range of F32 are summed again in double.
#pragma once

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::pointwise {

inline constexpr int kHeldChunks = 2;     // at most, per thread
inline constexpr int kNormThreads = 512;  // at most; with more, registers would spill

struct NormShape {
  long long rows;
  long long width;
  double divisor;  // of the sum of squares
  double eps;
  double scale;
};

// The sum over the blockDim.x threads of a row: part of a warp, or all warps of a block with one row. Every
// thread of the block must call it.
template <class Sum>
__device__ __forceinline__ Sum row_sum(Sum x, double* partial_memory) {
  const int lanes = blockDim.x;
  for (int step = (lanes < kWarp ? lanes : kWarp) / 2; step > 0; step /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, step);
  if (lanes <= kWarp) return x;
  Sum* partial = reinterpret_cast<Sum*>(partial_memory);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  Sum sum = 0;
  for (int w = 0; w < lanes / kWarp; ++w) sum += partial[w];
  return sum;
}

// A norm's weight of any parameter type, in chunks that are converted to float only when they are used.
template <int V>
struct WeightChunk {
  static_assert(V % 2 == 0);
  unsigned words[V];
  __device__ __forceinline__ float get(int i, ops::DType type) const {
    if (type == ops::DType::f32) return __uint_as_float(words[i]);
    const unsigned half = i % 2 == 0 ? words[i / 2] & 0xffffu : words[i / 2] >> 16;
    if (type == ops::DType::bf16) return __uint_as_float(half << 16);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
  }
};

struct NormWeight {
  const void* data = nullptr;  // null: all ones
  ops::DType type = ops::DType::f32;
  bool aligned = false;

  NormWeight() = default;
  NormWeight(const ops::ConstView& view, int v) : data(view.data), type(view.dtype) {
    if (view.present()) aligned = chunks_aligned(view, v);
  }
  template <int V>
  __device__ __forceinline__ WeightChunk<V> load(long long at, long long width) const {
    WeightChunk<V> chunk{};
    if (data == nullptr || at >= width) return chunk;
    if (type == ops::DType::f32) {
      const auto raw = load_chunk<V>(static_cast<const float*>(data) + at, width - at, aligned);
#pragma unroll
      for (int i = 0; i < V; ++i) chunk.words[i] = __float_as_uint(raw.values[i]);
    } else {
      const auto raw = load_chunk<V>(static_cast<const __half*>(data) + at, width - at, aligned);
#pragma unroll
      for (int i = 0; i < V / 2; ++i) chunk.words[i] = reinterpret_cast<const unsigned*>(&raw)[i];
    }
    return chunk;
  }
  template <int V>
  __device__ __forceinline__ void apply(const WeightChunk<V>& chunk, float (&x)[V]) const {
    if (data == nullptr) return;
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] *= chunk.get(i, type);
  }
};

template <class Sum, int V>
__device__ __forceinline__ Sum sum_of_squares(const float (&x)[V]) {
  Sum sum = 0;
#pragma unroll
  for (int i = 0; i < V; ++i) sum += static_cast<Sum>(x[i]) * static_cast<Sum>(x[i]);
  return sum;
}

// `Norm` describes a row's memory: Norm::kV; kWeight; weight; row(i) with
//   load(at, left)             loads a chunk of every input, in memory's types (first pass)
//   values(raw, at, left, x)   the values to be normalised (first pass); may store
//   again(at, left)            loads the chunk for a second pass, after values() stored
//   widen_again(raw, x)        its values
//   write(raw, at, left, x)    writes x times the row's factor and the weight
template <int kHeld, class Norm>
__device__ __forceinline__ void norm_rows(const Norm& norm, const NormShape& shape, long long block,
                                          long long blocks) {
  constexpr int V = Norm::kV;
  __shared__ double partial[kWarp];
  const long long first = threadIdx.x * V;
  const long long step = static_cast<long long>(blockDim.x) * V;
  WeightChunk<V> weight[kHeld];
#pragma unroll
  for (int h = 0; h < kHeld; ++h) weight[h] = norm.weight.template load<V>(first + h * step, shape.width);
  wait_for_inputs();
  allow_successor();
  for (long long base = block * blockDim.y; base < shape.rows; base += blocks * blockDim.y) {
    // Lanes without a row still take part in the sums of their warp.
    const bool live = base + threadIdx.y < shape.rows;
    const long long width = live ? shape.width : 0;
    const auto row = norm.row(live ? base + threadIdx.y : base);
    typename Norm::Raw raw[kHeld];
    float x[kHeld][V] = {};
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (const long long at = first + h * step; at < width) raw[h] = row.load(at, width - at);
    float squares = 0;
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (const long long at = first + h * step; at < width) {
        row.values(raw[h], at, width - at, x[h]);
        squares += sum_of_squares<float>(x[h]);
      }
    for (long long at = first + kHeld * step; at < width; at += step) {
      float y[V];
      row.values(row.load(at, width - at), at, width - at, y);
      squares += sum_of_squares<float>(y);
    }
    squares = row_sum(squares, partial);
    const bool in_range = squares > 1e-25f && squares < 1e38f;
    float factor = rsqrtf(squares / static_cast<float>(shape.divisor) + static_cast<float>(shape.eps)) *
                   static_cast<float>(shape.scale);
    if (__any_sync(0xffffffffu, live && !in_range)) {
      double exact = 0;
#pragma unroll
      for (int h = 0; h < kHeld; ++h) exact += sum_of_squares<double>(x[h]);
      for (long long at = first + kHeld * step; at < width; at += step) {
        float y[V];
        row.widen_again(row.again(at, width - at), y);
        exact += sum_of_squares<double>(y);
      }
      exact = row_sum(exact, partial);
      if (!in_range) factor = static_cast<float>(shape.scale / sqrt(exact / shape.divisor + shape.eps));
    }
    const auto write = [&](const typename Norm::Raw& from, long long at, const WeightChunk<V>& w,
                           float(&y)[V]) {
#pragma unroll
      for (int i = 0; i < V; ++i) y[i] *= factor;
      norm.weight.apply(w, y);
      row.write(from, at, width - at, y);
    };
#pragma unroll
    for (int h = 0; h < kHeld; ++h)
      if (const long long at = first + h * step; at < width) write(raw[h], at, weight[h], x[h]);
    for (long long at = first + kHeld * step; at < width; at += step) {
      float y[V];
      const typename Norm::Raw from = row.again(at, width - at);
      row.widen_again(from, y);
      write(from, at, norm.weight.template load<V>(at, shape.width), y);
    }
  }
}

template <int kHeld, class Norm>
__global__ void __launch_bounds__(kNormThreads) norm_kernel(Norm norm, NormShape shape) {
  norm_rows<kHeld>(norm, shape, blockIdx.x, gridDim.x);
}

// The block's dimensions: (lanes of a row, rows).
inline dim3 norm_threads(long long width, int v) {
  const long long chunks = divide_up<long long>(width, v);
  if (chunks > kHeldChunks * kWarp) {
    const long long warps = divide_up<long long>(chunks, kHeldChunks * kWarp);
    return dim3(to_unsigned(warps < kNormThreads / kWarp ? warps * kWarp : kNormThreads));
  }
  unsigned lanes = 1;
  while (lanes < kWarp && lanes < chunks) lanes *= 2;
  return {lanes, 128 / lanes};
}

// Whether a thread has at most one chunk of a row, as with heads; it then needs half the registers.
inline bool one_chunk(long long width, int v, const dim3& threads) {
  return width <= static_cast<long long>(threads.x) * v;
}

// Enough blocks for `rows` rows, but not more than the device runs at the same time.
inline unsigned norm_blocks(const Context& context, long long rows, const dim3& threads) {
  const long long wanted = divide_up<long long>(rows, threads.y);
  const long long held = context.device().multiprocessors * (2048ll / (threads.x * threads.y));
  return to_unsigned(wanted < held ? wanted : held);
}

template <class Norm>
void launch_norm(Context& context, const Norm& norm, const NormShape& shape) {
  const dim3 threads = norm_threads(shape.width, Norm::kV);
  const Grid grid{dim3(norm_blocks(context, shape.rows, threads)), threads};
  if (one_chunk(shape.width, Norm::kV, threads))
    launch(context, norm_kernel<1, Norm>, grid, norm, shape);
  else
    launch(context, norm_kernel<kHeldChunks, Norm>, grid, norm, shape);
}

}  // namespace sluice::backend::cuda::pointwise
