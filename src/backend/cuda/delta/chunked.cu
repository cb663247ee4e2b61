// The second kernel of the chunked delta rule for any device, and the host code of that form; chunks.cuh has
// the formulas.
//
// Grid: (sequence, value head, 16 kWarps rows of the state). Rows of a state are independent, so each of
// kWarps state warps keeps 16 of them in registers, as accumulators of the tensor cores, over all chunks.
// Within a chunk R, X and the new state follow from products whose left operand is made from the previous
// product's accumulators, without exchange between warps. The state, R, X and both square matrices enter
// products as sums of two BF16 terms: out is accurate to its own rounding, the state to 1e-5. Each state warp
// has an output warp, which runs one chunk behind: it gets the state and X through shared memory, computes
// out from them, and prefetches the tiles of the next chunks. Bytes: q, k, v, out once, 21 KB of tables per
// chunk and head, the state twice; k, q and tables again from the cache for the other slices of Dv.
#include <algorithm>

#include "backend/cuda/delta/walk.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kTokenTiles = kChunk / 8;  // accumulators across the tokens of a chunk
// Number of chunks whose tables are in scratch memory at a time.
constexpr std::int64_t kChunksAtOnce = 256;

// What a state warp passes to its output warp.
template <int kWidth>
struct Handover {
  Sums state[kWidth / 8][kWarp];
  Sums x[kTokenTiles][kWarp];
};

template <int kWidth, int kWarps>
struct Shared {
  StateTiles<kWidth, 16 * kWarps> state[2];
  OutTiles<kWidth> out[2];
  Handover<kWidth> handover[2][kWarps];
};

// Multiplies the accumulators by a factor per token; tokens are columns.
__device__ __forceinline__ void scale_tokens(Sums& sums, const float* factors, int lane) {
  const float2 factor = *reinterpret_cast<const float2*>(factors + lane % 4 * 2);
  sums.at[0] *= factor.x;
  sums.at[1] *= factor.y;
  sums.at[2] *= factor.x;
  sums.at[3] *= factor.y;
}

// products += S KT (or S QT) over the tokens of a chunk; sums(n) holds columns 8n.. of S.
template <int kWidth, class SumsAt>
__device__ __forceinline__ void multiply_state(const SumsAt& sums, const Bf16* tile,
                                               Sums (&products)[kTokenTiles], int lane) {
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step) {
    const TwoTerms s = split_sums(sums(2 * step), sums(2 * step + 1));
    Fragment tokens[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i)
      tokens[i] = load_matrices(
          tile + swizzled<kWidth / 8>(i * 16 + halves_first(lane), 2 * step + lane / 8 % 2) * 8);
#pragma unroll
    for (int i = 0; i < kSide; ++i) multiply_add(products[2 * i], products[2 * i + 1], s.high, tokens[i]);
#pragma unroll
    for (int i = 0; i < kSide; ++i) multiply_add(products[2 * i], products[2 * i + 1], s.low, tokens[i]);
  }
}

// products += values times a lower triangular matrix given as two terms, with three of the four products of
// terms.
template <class SumsAt>
__device__ __forceinline__ void multiply_lower(const SumsAt& values, const LowerMatrix& matrix,
                                               Sums (&products)[kTokenTiles], int lane) {
#pragma unroll
  for (int j = 0; j < kSide; ++j) {
    const TwoTerms left = split_sums(values(2 * j), values(2 * j + 1));
#pragma unroll
    for (int i = j; i < kSide; ++i)
      multiply_add(products[2 * i], products[2 * i + 1], left.high, matrix.high[lower_block(i, j)][lane]);
#pragma unroll
    for (int i = j; i < kSide; ++i)
      multiply_add(products[2 * i], products[2 * i + 1], left.low, matrix.high[lower_block(i, j)][lane]);
#pragma unroll
    for (int i = j; i < kSide; ++i)
      multiply_add(products[2 * i], products[2 * i + 1], left.high, matrix.low[lower_block(i, j)][lane]);
  }
}

// r = v - e^G o r, for the 16 rows of a warp.
template <int kWarps>
__device__ __forceinline__ void subtract_from_values(const Bf16* v_tile, const float* from_start,
                                                     Sums (&r)[kTokenTiles], int warp, int lane) {
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    const Fragment v = load_transposed(
        v_tile + swizzled<2 * kWarps>(i * 16 + halves_first(lane), 2 * warp + lane / 8 % 2) * 8);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      Sums& sums = r[2 * i + n];
      scale_tokens(sums, from_start + i * 16 + n * 8, lane);
      const float2 top = unpack_pair(v.at[2 * n]);
      const float2 bottom = unpack_pair(v.at[2 * n + 1]);
      sums = {top.x - sums.at[0], top.y - sums.at[1], bottom.x - sums.at[2], bottom.y - sums.at[3]};
    }
  }
}

// Advances 16 rows of the state, held as [16, Dk], by one chunk. Stores to the handover precede the loads of
// a stage, because the compiler could not move a load ahead of them.
template <int kWidth, int kWarps>
__device__ __forceinline__ void advance_state(Sums (&state)[kWidth / 8],
                                              const StateTiles<kWidth, 16 * kWarps>& tiles,
                                              Handover<kWidth>& handover, int warp, int lane) {
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n) handover.state[n][lane] = state[n];
  Sums r[kTokenTiles] = {};
  multiply_state<kWidth>([&](int n) -> const Sums& { return state[n]; }, tiles.k, r, lane);
  subtract_from_values<kWarps>(tiles.v, tiles.table.from_start, r, warp, lane);
  Sums x[kTokenTiles] = {};
  multiply_lower([&](int n) -> const Sums& { return r[n]; }, tiles.table.inverse, x, lane);
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) handover.x[n][lane] = x[n];

  const float decay = tiles.table.from_start[kChunk - 1];
#pragma unroll
  for (Sums& sums : state)
#pragma unroll
    for (float& value : sums.at) value *= decay;
#pragma unroll
  for (int j = 0; j < kSide; ++j) {
    scale_tokens(x[2 * j], tiles.table.to_end + j * 16, lane);
    scale_tokens(x[2 * j + 1], tiles.table.to_end + j * 16 + 8, lane);
    const TwoTerms left = split_sums(x[2 * j], x[2 * j + 1]);
#pragma unroll
    for (int n = 0; n < kWidth / 16; ++n) {
      const int at = swizzled<kWidth / 8>(j * 16 + rows_first(lane), 2 * n + lane / 16) * 8;
      const Fragment k = load_transposed(tiles.k + at);
      multiply_add(state[2 * n], state[2 * n + 1], left.high, k);
      multiply_add(state[2 * n], state[2 * n + 1], left.low, k);
    }
  }
}

// The outputs [rows, 16] of one chunk for 16 rows of the state.
template <int kWidth>
__device__ __forceinline__ void write_out(const OutTiles<kWidth>& tiles, const Handover<kWidth>& handover,
                                          Bf16* out, long long stride, int rows, int lane) {
  Sums sums[kTokenTiles] = {};
  multiply_state<kWidth>([&](int n) -> const Sums& { return handover.state[n][lane]; }, tiles.q, sums, lane);
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) scale_tokens(sums[n], tiles.table.from_start + n * 8, lane);
  multiply_lower([&](int n) -> const Sums& { return handover.x[n][lane]; }, tiles.table.mix, sums, lane);
#pragma unroll
  for (int n = 0; n < kTokenTiles; ++n) {
    const std::uint32_t left = transpose_matrix(pack_pair(sums[n].at[0], sums[n].at[1]));
    const std::uint32_t right = transpose_matrix(pack_pair(sums[n].at[2], sums[n].at[3]));
    const int row = n * 8 + lane / 4;
    if (row >= rows) continue;
    auto* to = reinterpret_cast<std::uint32_t*>(out + row * stride + lane % 4 * 2);
    to[0] = left;
    to[4] = right;
  }
}

// Loads or stores 16 rows of a state, held as a warp's accumulators; columns past Dk are zero.
template <bool kStore, int kWidth>
__device__ __forceinline__ void move_state(const DeltaCall& call, float* rows, long long stride,
                                           Sums (&state)[kWidth / 8], int lane) {
#pragma unroll
  for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = n * 8 + lane % 4 * 2 + e % 2;
      float* at = rows + (lane / 4 + e / 2 * 8) * stride + column;
      const bool inside = column < call.key_width;
      if constexpr (kStore) {
        if (inside) *at = state[n].at[e];
      } else {
        state[n].at[e] = inside ? *at : 0.0f;
      }
    }
}

template <int kWidth, int kWarps>
__global__ void __launch_bounds__(2 * kWarps * kWarp, 1) delta_walk(DeltaCall call, ChunkRange range) {
  extern __shared__ __align__(128) std::byte memory[];
  auto& shared = *reinterpret_cast<Shared<kWidth, kWarps>*>(memory);
  wait_for_inputs();
  allow_successor();
  if (blockIdx.x == 0) call.saves.check(call.sequences, call.fault);
  const Walk walk = Walk::of_block<16 * kWarps>(call, range, to_int(blockIdx.x));
  if (walk.begin >= walk.end) return;

  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp % kWarps;
  const int thread = to_int(threadIdx.x) % (kWarps * kWarp);
  const bool state_warp = threadIdx.x < kWarps * kWarp;
  if (state_warp) {
    float* rows = call.state_row(walk.part, walk.head, walk.row + warp * 16);
    Sums state[kWidth / 8];
    move_state<false, kWidth>(call, rows, call.state_strides[1], state, lane);
    __syncthreads();
    for (int c = walk.begin; c <= walk.end; ++c) {
      if (c < walk.end) {
        advance_state<kWidth, kWarps>(state, shared.state[c % 2], shared.handover[c % 2][warp], warp, lane);
        const int save = walk.save_behind(call, c);
        if (save >= 0)
          move_state<true, kWidth>(call, call.saved_row(save, walk.head, walk.row + warp * 16),
                                   call.saved_strides[2], state, lane);
      }
      __syncthreads();
    }
    move_state<true, kWidth>(call, rows, call.state_strides[1], state, lane);
    return;
  }
  copy_state_tiles<kWarps * kWarp>(call, range, walk, walk.begin, shared.state[walk.begin % 2], thread);
  close_copies();
  wait_for_copies<0>();
  __syncthreads();
  for (int c = walk.begin; c <= walk.end; ++c) {
    if (c + 1 < walk.end)
      copy_state_tiles<kWarps * kWarp>(call, range, walk, c + 1, shared.state[(c + 1) % 2], thread);
    if (c < walk.end) copy_out_tiles<kWarps * kWarp>(call, range, walk, c, shared.out[c % 2], thread);
    close_copies();
    if (c > walk.begin) {
      Bf16* out = static_cast<Bf16*>(call.out) + walk.token(c - 1) * call.out_strides[0] +
                  walk.head * call.out_strides[1] + walk.row + warp * 16;
      write_out(shared.out[(c - 1) % 2], shared.handover[(c - 1) % 2][warp], out, call.out_strides[0],
                walk.rows(c - 1), lane);
    }
    wait_for_copies<0>();
    __syncthreads();
  }
}

template <int kWidth, int kWarps>
void launch_walk(Context& context, const DeltaCall& call, const ChunkRange& range) {
  const auto blocks =
      to_unsigned(call.sequences.count * call.value_heads * (call.value_width / (16 * kWarps)));
  launch(context, delta_walk<kWidth, kWarps>,
         {dim3(blocks), dim3(2 * kWarps * kWarp), sizeof(Shared<kWidth, kWarps>)}, call, range);
}

// With few heads, small slices of Dv, so that all multiprocessors have work; with many, large slices, which
// read k and q less often.
void launch_walks(Context& context, const DeltaCall& call, const ChunkRange& range) {
  if (walk_wgmma_supports(context, call)) return launch_walk_wgmma(context, call, range);
  const int small_blocks = call.sequences.count * call.value_heads * (call.value_width / 32);
  const bool large = small_blocks > context.device().multiprocessors && call.value_width % 64 == 0;
  with_key_width(call.key_width, [&]<int kWidth>() {
    if (large && sizeof(Shared<kWidth, 4>) <= context.device().shared_bytes_per_block)
      launch_walk<kWidth, 4>(context, call, range);
    else
      launch_walk<kWidth, 2>(context, call, range);
  });
}

}  // namespace

bool chunked_supports(const Context& context, const ops::DeltaRule& op) {
  std::size_t needed = 0;
  with_key_width(to_int(op.k.dim(2)), [&]<int kWidth>() { needed = sizeof(Shared<kWidth, 2>); });
  const auto fits = [](const auto& view, int elements) {
    return view.dtype == ops::DType::bf16 && aligned(view, elements);
  };
  return op.k.dim(2) <= kWidestKey && needed <= context.device().shared_bytes_per_block && fits(op.q, 8) &&
         fits(op.k, 8) && fits(op.v, 8) && fits(op.out, 2);
}

void launch_chunked(Context& context, const ops::DeltaRule& op) {
  const DeltaCall call(context, op);
  const std::int64_t chunks = call.sequences.tokens / kChunk + call.sequences.count;
  const std::int64_t at_once = std::min(chunks, kChunksAtOnce);
  auto* tables = reinterpret_cast<ChunkTable*>(
      context.scratch(to_size(at_once * call.value_heads) * sizeof(ChunkTable)));
  for (std::int64_t first = 0; first < chunks; first += at_once) {
    const ChunkRange range{tables, to_int(first), to_int(std::min(first + at_once, chunks))};
    launch_prepare(context, call, range);
    launch_walks(context, call, range);
  }
}

}  // namespace sluice::backend::cuda::delta
