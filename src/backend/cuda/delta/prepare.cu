// The first kernel of the chunked delta rule: for every chunk and value head it computes the inverse of I +
// tril(diag(beta) (K KT o D), -1) times diag(beta), the matrix tril(Q KT o D), and the decays e^G and
// e^(G_last - G).
//
// Grid: (chunk, key head); four warps. Tensor cores compute K KT and Q KT once, 16 rows per warp, and the
// products stay in registers for all value heads that share the key head. These are handled two at a time: 64
// threads compute the columns of one inverse, one column per thread, by forward substitution in F32. Sums of
// g are kept as two floats, so their differences are accurate even after a reset (g = -inf counts as -200).
// Bytes: q and k once, 21 KB of tables per chunk and value head.
#include "backend/cuda/delta/chunks.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kThreads = 128;
constexpr int kStride = kChunk + 4;  // floats per row of the matrix to be inverted

// Gates of the current two value heads.
struct Gates {
  float sum[2][kChunk];   // G
  float rest[2][kChunk];  // its rounding error
  float beta[2][kChunk];
};

// The value head with number `index` among those that share a key head; -1 if there is none.
__device__ __forceinline__ int value_head(const DeltaCall& call, int key_head, int index) {
  const int shared = call.value_heads / call.key_heads;
  if (index >= shared) return -1;
  return call.tiled ? index * call.key_heads + key_head : key_head * shared + index;
}

// The sums of g of a value head, by one warp in a fixed order, two tokens per lane.
__device__ void read_gates(const DeltaCall& call, const SequencePart& chunk, int head, int half, Gates& gates,
                           ChunkTable& table) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const int rows = chunk.tokens();
  double g[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * lane + i;
    const long long t = chunk.begin + row;
    if (row < rows) {
      const float value = call.g[t * call.g_stride + head];
      g[i] = value < -200.0f ? -200.0f : value;
    }
    gates.beta[half][row] = row < rows ? call.beta[t * call.beta_stride + head] : 0.0f;
  }
  double sum = g[0] + g[1];
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const double before = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += before;
  }
  const double all = __shfl_sync(0xffffffffu, sum, kWarp - 1);
  const double before = __shfl_up_sync(0xffffffffu, sum, 1);
  const double earlier = lane > 0 ? before : 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * lane + i;
    const double here = i == 0 ? earlier + g[0] : sum;
    const auto rounded = static_cast<float>(here);
    gates.sum[half][row] = rounded;
    gates.rest[half][row] = static_cast<float>(here - rounded);
    table.state.from_start[row] = expf(rounded);
    table.out.from_start[row] = expf(rounded);
    table.state.to_end[row] = expf(static_cast<float>(all - here));
  }
}

// Writes the warp's 16 rows of diag(beta) (K KT o D) below the diagonal to `matrix`, and those of Q KT o D to
// the table.
__device__ __forceinline__ void apply_gates(const Sums (&kk)[2 * kSide], const Sums (&qk)[2 * kSide],
                                            const Gates& gates, int half, float* matrix, OutTable& table) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  float sum[2];
  float rest[2];
  float beta[2];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int i = warp * 16 + lane / 4 + e * 8;
    sum[e] = gates.sum[half][i];
    rest[e] = gates.rest[half][i];
    beta[e] = gates.beta[half][i];
  }
#pragma unroll
  for (int block = 0; block < kSide; ++block) {
    if (block > warp) break;
    TwoTerms mix;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int j = block * 16 + n * 8 + lane % 4 * 2;
      const float2 sum_j = *reinterpret_cast<const float2*>(&gates.sum[half][j]);
      const float2 rest_j = *reinterpret_cast<const float2*>(&gates.rest[half][j]);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int i = warp * 16 + lane / 4 + e * 8;
        const float first = j <= i ? __expf((sum[e] - sum_j.x) + (rest[e] - rest_j.x)) : 0.0f;
        const float second = j + 1 <= i ? __expf((sum[e] - sum_j.y) + (rest[e] - rest_j.y)) : 0.0f;
        const Sums& keys = kk[2 * block + n];
        const Sums& queries = qk[2 * block + n];
        *reinterpret_cast<float2*>(matrix + i * kStride + j) = {beta[e] * keys.at[2 * e] * first,
                                                                beta[e] * keys.at[2 * e + 1] * second};
        // Rows become columns of a right operand, so the two halves are swapped: see LowerMatrix.
        const float2 mixed = {queries.at[2 * e] * first, queries.at[2 * e + 1] * second};
        mix.high.at[2 * e + n] = pack_pair(mixed.x, mixed.y);
        mix.low.at[2 * e + n] = pack_rest(mixed.x, mixed.y, mix.high.at[2 * e + n]);
      }
    }
    table.mix.high[lower_block(warp, block)][lane] = mix.high;
    table.mix.low[lower_block(warp, block)][lane] = mix.low;
  }
}

// Column j >= kFirst of (I + matrix)^-1, from row kFirst on: the rows above are zero.
template <int kFirst>
__device__ __forceinline__ void solve_column(const float* matrix, int j, float (&x)[kChunk]) {
#pragma unroll
  for (int i = kFirst; i < kChunk; ++i) {
    float sums[4] = {i == j ? 1.0f : 0.0f, 0, 0, 0};
#pragma unroll
    for (int l = kFirst; l < i; l += 4) {
      const float4 row = *reinterpret_cast<const float4*>(matrix + i * kStride + l);
      sums[0] -= row.x * x[l];
      if (l + 1 < i) sums[1] -= row.y * x[l + 1];
      if (l + 2 < i) sums[2] -= row.z * x[l + 2];
      if (l + 3 < i) sums[3] -= row.w * x[l + 3];
    }
    x[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// Writes column j, times beta_j, in two terms, to its place in the table's layout.
__device__ __forceinline__ void place_column(const float (&x)[kChunk], float beta, int j, Bf16* blocks) {
#pragma unroll
  for (int i = 0; i < kChunk; ++i) {
    if (i / 16 < j / 16) continue;  // not in the table, nor computed
    const float value = x[i] * beta;
    const Bf16 high = from_float<Bf16>(value);
    const int lane = i % 8 * 4 + j % 8 / 2;
    const int part = i % 16 / 8 * 2 + j % 16 / 8;
    const int at = (lower_block(i / 16, j / 16) * kWarp + lane) * 8 + part * 2 + j % 2;
    blocks[at] = high;
    blocks[at + kLowerBlocks * kWarp * 8] = from_float<Bf16>(value - to_float(high));
  }
}

template <int kWidth>
constexpr int shared_bytes() {
  const int tiles = 2 * kChunk * kWidth * to_int(sizeof(Bf16));
  const int matrices = 2 * kChunk * kStride * to_int(sizeof(float));
  return tiles > matrices ? tiles : matrices;
}

template <int kWidth>
__device__ __forceinline__ void multiply_keys(const Bf16* k_tile, const Bf16* q_tile, Sums (&kk)[2 * kSide],
                                              Sums (&qk)[2 * kSide]) {
  constexpr int kPieces = kWidth / 8;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
#pragma unroll 4
  for (int step = 0; step < kWidth / 16; ++step) {
    const int left = swizzled<kPieces>(warp * 16 + rows_first(lane), 2 * step + lane / 16) * 8;
    const Fragment k = load_matrices(k_tile + left);
    const Fragment q = load_matrices(q_tile + left);
#pragma unroll
    for (int block = 0; block < kSide; ++block) {
      if (block > warp) break;
      const int right = swizzled<kPieces>(block * 16 + halves_first(lane), 2 * step + lane / 8 % 2) * 8;
      const Fragment other = load_matrices(k_tile + right);
      multiply_add(kk[2 * block], kk[2 * block + 1], k, other);
      multiply_add(qk[2 * block], qk[2 * block + 1], q, other);
    }
  }
}

// kOnePair: at most two value heads share a key head, so the products are not needed after the first
// solution, and more blocks fit on a multiprocessor.
template <int kWidth, bool kOnePair>
__global__ void __launch_bounds__(kThreads, kOnePair ? 5 : 3)
    delta_prepare(DeltaCall call, ChunkRange range) {
  extern __shared__ __align__(128) std::byte memory[];
  __shared__ Gates gates;
  wait_for_inputs();
  allow_successor();
  const int thread = threadIdx.x;
  const int key_head = to_int(blockIdx.x) % call.key_heads;
  const int chunk = range.first + to_int(blockIdx.x) / call.key_heads;
  const SequencePart part = sequence_of_chunk(call, chunk);
  const int token = part.begin;
  const int rows = part.tokens();
  if (rows == 0) return;

  auto* k_tile = reinterpret_cast<Bf16*>(memory);
  Bf16* q_tile = k_tile + kChunk * kWidth;
  copy_rows<kWidth>(
      k_tile,
      {static_cast<const Bf16*>(call.k.data) + token * call.k_strides[0] + key_head * call.k_strides[1],
       call.k_strides[0], rows, call.key_width},
      thread, kThreads);
  copy_rows<kWidth>(
      q_tile,
      {static_cast<const Bf16*>(call.q.data) + token * call.q_strides[0] + key_head * call.q_strides[1],
       call.q_strides[0], rows, call.key_width},
      thread, kThreads);
  close_copies();
  wait_for_copies<0>();
  __syncthreads();
  Sums kk[2 * kSide] = {};
  Sums qk[2 * kSide] = {};
  multiply_keys<kWidth>(k_tile, q_tile, kk, qk);

  const int half = thread / kChunk;
  // The right half of the columns is only a quarter of the work. Which warps have it varies between
  // blocks, because otherwise two of the four schedulers would idle.
  const unsigned change = blockIdx.x * 0x9e3779b9u >> 31;
  const int column = thread % kChunk ^ to_int(change * kWarp);
  // Reuses the memory of the tiles, as place_column() reuses that of the matrix.
  auto* matrix = reinterpret_cast<float*>(memory);
  float* mine = matrix + half * kChunk * kStride;
  for (int pair = 0; value_head(call, key_head, pair) >= 0; pair += 2) {
    if (thread < 2 * kWarp) {
      const int head = value_head(call, key_head, pair + thread / kWarp);
      if (head >= 0) read_gates(call, part, head, thread / kWarp, gates, range.at(call, chunk, head));
    }
    __syncthreads();
    for (int h = 0; h < 2; ++h) {
      const int head = value_head(call, key_head, pair + h);
      if (head >= 0)
        apply_gates(kk, qk, gates, h, matrix + h * kChunk * kStride, range.at(call, chunk, head).out);
    }
    __syncthreads();
    const int head = value_head(call, key_head, pair + half);
    float x[kChunk];
    if (head >= 0 && column < kWarp) solve_column<0>(mine, column, x);
    if (head >= 0 && column >= kWarp) solve_column<kWarp>(mine, column, x);
    __syncthreads();
    if (head >= 0) place_column(x, gates.beta[half][column], column, reinterpret_cast<Bf16*>(mine));
    __syncthreads();
    if (head >= 0) {
      auto* to = reinterpret_cast<uint4*>(&range.at(call, chunk, head).state.inverse);
      for (int i = column; i < 2 * kLowerBlocks * kWarp; i += kChunk)
        to[i] = reinterpret_cast<const uint4*>(mine)[i];
    }
    if constexpr (kOnePair) return;
    __syncthreads();
  }
}

}  // namespace

void launch_prepare(Context& context, const DeltaCall& call, const ChunkRange& range) {
  with_key_width(call.key_width, [&]<int kWidth>() {
    const auto blocks = to_unsigned((range.last - range.first) * call.key_heads);
    const bool one_pair = call.value_heads <= 2 * call.key_heads;
    launch(context, one_pair ? delta_prepare<kWidth, true> : delta_prepare<kWidth, false>,
           {dim3(blocks), dim3(kThreads), shared_bytes<kWidth>()}, call, range);
  });
}

}  // namespace sluice::backend::cuda::delta
