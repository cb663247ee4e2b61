// A_ij = beta_i (k_i . k_j) e^(g_i - g_j) for i > j within a chunk, 0 elsewhere; with BF16 k, k*beta is
// rounded to BF16 before the dot.
//
// One block per 64x64 tile of one chunk and head; a thread computes 4x4 of it, and both operands pass through
// shared memory 32 columns at a time, with F32 FMA. Tiles above the diagonal are zero without a product.
// Bytes: A once, k once per head that reads it. F32 sums: relative error about 1e-6.
#include <algorithm>

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"
#include "sluice/ops/delta/delta_kkt.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kTile = 64;   // rows and columns of A per block
constexpr int kSlice = 32;  // columns of k per step
constexpr int kSide = 16;   // threads along each side of the tile
constexpr int kEach = kTile / kSide;

struct KktCall {
  const void* k;
  const float* beta;
  const float* g;
  float* out;
  long long k_strides[3];
  long long beta_strides[2];
  long long g_strides[2];
  long long out_strides[3];
  int tokens;
  int heads;
  int heads_per_key;
  int width;
  int chunk;
  int row_tiles;  // of a chunk
  int tiles;      // of all chunks
};

template <class T>
__global__ void __launch_bounds__(kSide* kSide) delta_kkt_tile(KktCall call) {
  __shared__ float rows[kTile][kSlice + 1];
  __shared__ float columns[kTile][kSlice + 1];
  wait_for_inputs();
  allow_successor();
  const int tile = to_int(blockIdx.x) % call.tiles;
  const int head = to_int(blockIdx.x) / call.tiles % call.heads;
  const long long batch = to_int(blockIdx.x) / call.tiles / call.heads;
  const int first = tile / call.row_tiles * call.chunk;  // first token of the chunk
  const int i0 = tile % call.row_tiles * kTile;          // i0 and j0 count within the chunk
  const int j0 = to_int(blockIdx.y) * kTile;
  const int count = min(call.chunk, call.tokens - first);
  const T* k = static_cast<const T*>(call.k) + batch * call.k_strides[0] +
               head / call.heads_per_key * call.k_strides[2];
  const float* beta = call.beta + batch * call.beta_strides[0] + head;
  const float* g = call.g + batch * call.g_strides[0] + head;
  float sum[kEach][kEach] = {};
  const bool below = j0 <= i0 && i0 < count;
  for (int c0 = 0; below && c0 < call.width; c0 += kSlice) {
    for (int at = threadIdx.x; at < kTile * kSlice; at += kSide * kSide) {
      const int r = at / kSlice;
      const int c = at % kSlice;
      const bool inside = c0 + c < call.width;
      float row = 0;
      float column = 0;
      if (inside && i0 + r < count) {
        const long long token = first + i0 + r;
        row = to_float(k[token * call.k_strides[1] + c0 + c]) * beta[token * call.beta_strides[1]];
        row = to_float(from_float<T>(row));
      }
      if (inside && j0 + r < count) column = to_float(k[(first + j0 + r) * call.k_strides[1] + c0 + c]);
      rows[r][c] = row;
      columns[r][c] = column;
    }
    __syncthreads();
    for (int c = 0; c < kSlice; ++c) {
      float left[kEach];
      float right[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        left[e] = rows[threadIdx.x / kSide + e * kSide][c];
        right[e] = columns[threadIdx.x % kSide + e * kSide][c];
      }
#pragma unroll
      for (int a = 0; a < kEach; ++a)
#pragma unroll
        for (int b = 0; b < kEach; ++b) sum[a][b] += left[a] * right[b];
    }
    __syncthreads();
  }
#pragma unroll
  for (int a = 0; a < kEach; ++a) {
    const int i = i0 + to_int(threadIdx.x) / kSide + a * kSide;
    if (i >= count) continue;
    const long long token = first + i;
    const float g_i = g[token * call.g_strides[1]];
    float* out =
        call.out + batch * call.out_strides[0] + token * call.out_strides[1] + head * call.out_strides[2];
#pragma unroll
    for (int b = 0; b < kEach; ++b) {
      const int j = j0 + to_int(threadIdx.x) % kSide + b * kSide;
      if (j >= call.chunk) continue;
      float value = 0;
      if (j < i) {
        // Equal sums, even -inf, mean that there was no decay in between.
        const float g_j = g[(first + j) * call.g_strides[1]];
        value = sum[a][b] * (g_i != g_j ? expf(g_i - g_j) : 1.0f);
      }
      out[j] = value;
    }
  }
}

}  // namespace

}  // namespace sluice::backend::cuda::delta

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::DeltaKkt& op) {
  using namespace delta;
  const auto tokens = to_int(op.k.dim(1));
  const auto heads = to_int(op.beta.dim(2));
  const auto chunk = to_int(op.chunk);
  const int row_tiles = divide_up(std::min(chunk, tokens), kTile);
  const KktCall call{op.k.data,
                     static_cast<const float*>(op.beta.data),
                     static_cast<const float*>(op.g.data),
                     static_cast<float*>(op.A.data),
                     {op.k.strides[0], op.k.strides[1], op.k.strides[2]},
                     {op.beta.strides[0], op.beta.strides[1]},
                     {op.g.strides[0], op.g.strides[1]},
                     {op.A.strides[0], op.A.strides[1], op.A.strides[2]},
                     tokens,
                     heads,
                     heads / to_int(op.k.dim(2)),
                     to_int(op.k.dim(3)),
                     chunk,
                     row_tiles,
                     divide_up(tokens, chunk) * row_tiles};
  const dim3 blocks(to_unsigned(op.k.dim(0) * heads * call.tiles), to_unsigned(divide_up(chunk, kTile)));
  with_activation(op.k.dtype, [&]<class T>() {
    launch(context, delta_kkt_tile<T>, {blocks, dim3(kSide * kSide)}, call);
  });
}

}  // namespace sluice::backend::cuda
