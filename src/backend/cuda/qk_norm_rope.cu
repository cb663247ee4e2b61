// x = rope(x * rsqrt(mean(x^2) + eps) * weight), each head of q and of k, in place, rounded once.
//
// A warp a head: the row waits in shared memory in F32 between its sum of squares and its rotation, whose
// angles the lanes compute meanwhile. The first rows are q's, the others k's. Bytes: q and k twice.
#include "sluice/ops/qk_norm_rope.h"

#include "backend/cuda/chunk.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/rotary.cuh"
#include "backend/cuda/warp.cuh"
#include "sluice/ops/rms_norm.h"
#include "sluice/ops/rope.h"

namespace sluice::backend::cuda {

namespace {

constexpr int kWarps = 4;

struct Heads {
  void* data;
  Parameter weight;
  long long token_stride;
  long long head_stride;
  int heads;
  bool aligned;
};

struct QkCall {
  Heads sides[2];
  const float* inv_freq;
  const int* positions;
  long long tokens;
  int width;
  int pairs;
  float eps;
  float mscale;
};

// 1 / sqrt(mean + eps) of a row whose squares leave the range of F32.
__device__ __forceinline__ float far_factor(const float* row, int width, float eps) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < width; i += kWarp)
    sum += static_cast<double>(row[i]) * row[i];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return static_cast<float>(1 / sqrt(sum / width + eps));
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp) qk_norm_rope(const __grid_constant__ QkCall call) {
  constexpr int V = kChunk<T>;
  extern __shared__ float2 shared[];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float2* rotations = shared + static_cast<int>(threadIdx.x) / kWarp * (call.pairs + (call.width + 1) / 2);
  auto* row = reinterpret_cast<float*>(rotations + call.pairs);
  wait_for_inputs();
  allow_successor();
  long long index = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const long long queries = call.tokens * call.sides[0].heads;
  if (index >= queries + call.tokens * call.sides[1].heads) return;
  const Heads& side = call.sides[index < queries ? 0 : 1];
  if (index >= queries) index -= queries;
  const long long token = index / side.heads;
  T* x = static_cast<T*>(side.data) + token * side.token_stride + index % side.heads * side.head_stride;
  float squares = 0;
  for (int at = lane * V; at < call.width; at += kWarp * V) {
    float values[V];
    widen(load_chunk<V>(static_cast<const T*>(x) + at, call.width - at, side.aligned), values);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      squares += values[i] * values[i];
      if (at + i < call.width) row[at + i] = values[i];
    }
  }
  const int position = call.positions[token];
  for (int i = lane; i < call.pairs; i += kWarp)
    rotations[i] = rotation(position, call.inv_freq[i], call.mscale);
  squares = warp_sum(squares);
  __syncwarp();
  float factor = rsqrtf(squares / static_cast<float>(call.width) + call.eps);
  if (!(squares > 1e-25f && squares < 1e38f)) factor = far_factor(row, call.width, call.eps);
  const auto normed = [&](int i) { return row[i] * factor * side.weight[i]; };
  for (int at = lane * V; at < call.width; at += kWarp * V) {
    float values[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const int i = at + j;
      if (i >= call.width) break;
      values[j] = normed(i);
      if (i >= 2 * call.pairs) continue;
      const bool second = i >= call.pairs;
      const float2 by = rotations[second ? i - call.pairs : i];
      const float other = normed(second ? i - call.pairs : i + call.pairs);
      values[j] = values[j] * by.x + (second ? other : -other) * by.y;
    }
    store_chunk(narrow<T>(values), x + at, call.width - at, side.aligned);
  }
}

template <class T>
Heads heads_of(const ops::View& x, const ops::ConstView& weight) {
  return {x.data,       {weight.data, weight.dtype}, x.strides[0],
          x.strides[1], static_cast<int>(x.dim(1)),  chunks_aligned(x, kChunk<T>)};
}

void run_parts(Context& context, const ops::QkNormRope& op) {
  run(context, ops::RmsNorm{.x = op.q, .weight = op.q_weight, .out = op.q, .eps = op.eps});
  run(context, ops::RmsNorm{.x = op.k, .weight = op.k_weight, .out = op.k, .eps = op.eps});
  for (const ops::View& x : {op.q, op.k})
    run(context, ops::Rope{.x = x, .inv_freq = op.inv_freq, .positions = op.positions, .mscale = op.mscale});
}

}  // namespace

template <>
void run(Context& context, const ops::QkNormRope& op) {
  const auto width = static_cast<int>(op.q.dim(2));
  const auto pairs = static_cast<int>(op.inv_freq.dim(0));
  const std::size_t shared_bytes =
      kWarps * sizeof(float2) * static_cast<std::size_t>(pairs + (width + 1) / 2);
  if (op.q.dtype != op.k.dtype || shared_bytes > 48 * 1024) return run_parts(context, op);
  with_activation(op.q.dtype, [&]<class T>() {
    const QkCall call{{heads_of<T>(op.q, op.q_weight), heads_of<T>(op.k, op.k_weight)},
                      static_cast<const float*>(op.inv_freq.data),
                      static_cast<const int*>(op.positions.data),
                      op.q.dim(0),
                      width,
                      pairs,
                      static_cast<float>(op.eps),
                      static_cast<float>(op.mscale)};
    const long long rows = op.q.dim(0) * (op.q.dim(1) + op.k.dim(1));
    launch(
        context, qk_norm_rope<T>,
        {dim3(static_cast<unsigned>(divide_up<long long>(rows, kWarps))), dim3(kWarps * kWarp), shared_bytes},
        call);
  });
}

}  // namespace sluice::backend::cuda
