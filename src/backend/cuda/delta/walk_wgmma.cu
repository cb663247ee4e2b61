// The second kernel of the chunked delta rule on sm_90a; chunks.cuh has the formulas.
//
// Grid: (sequence, value head, 32 rows of the state). Tokens are the rows of every product but the last, and
// rows of the state are the columns of all products. So the known matrices (K, Q, both square ones) are left
// operands, in registers, and those that follow from the state are right operands: S, R and X pass through
// shared memory, each as a sum of two BF16 terms. out is accurate to its own rounding, the state to 1e-5. One
// warpgroup keeps the state, [Dk, 32], in accumulators over all chunks; a second one computes the outputs of
// a chunk from its S and X while the first proceeds; a third one prefetches the tiles of the next chunks.
//
// Per chunk: 72 products of 64 x 32 x 16, 1,152 cycles of the tensor cores; shared memory moves about 230 KB
// in 1,800. Bytes: q, k, v, out once, 21 KB of tables per chunk and head, the state twice; k, q and tables
// again from the cache for the other slices of Dv.
#include "backend/cuda/delta/walk.cuh"
#include "backend/cuda/device/quad.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kWidth = 128;  // Dk, padded with zeros
constexpr int kRows = 32;    // of the state per block
constexpr int kRole = 128;   // threads of a warpgroup
constexpr int kPanel = 64;   // elements per row of a right operand
constexpr int kHalves = kWidth / kPanel;
constexpr int kStateStages = 3;
constexpr int kOutStages = 2;
constexpr int kHandovers = 2;
constexpr int kAlignment = 1024;
constexpr int kWorkerRegisters = 200;
constexpr int kCopierRegisters = 104;
static_assert(2 * kWorkerRegisters + kCopierRegisters <= 3 * 168);

// A right operand [32, 64] in two terms: rows of 128 bytes, with 16-byte chunks swizzled by the row number.
struct alignas(kAlignment) Operand {
  Bf16 high[kRows * kPanel];
  Bf16 low[kRows * kPanel];
};

struct WalkMemory {
  Operand state[kHandovers][kHalves];
  Operand x[kHandovers];
  Operand r;
  Operand x_to_end;  // e^(G_last - G) o X
  StateTiles<kWidth, kRows> tiles[kStateStages];
  OutTiles<kWidth> out_tiles[kOutStages];
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Full when the reader may proceed, empty when the writer may.
template <int kCount>
struct Handshake {
  Barrier full[kCount];
  Barrier empty[kCount];

  __device__ __forceinline__ void set_up(int writers) {
    for (int i = 0; i < kCount; ++i) {
      full[i].set_up(writers);
      empty[i].set_up(kRole / kWarp);
    }
  }
  __device__ __forceinline__ void wait_until_full(const Turn<kCount>& turn) {
    full[turn.index].wait(turn.parity);
  }
  __device__ __forceinline__ void wait_until_empty(const Turn<kCount>& turn) {
    empty[turn.index].wait(turn.parity ^ 1);
  }
};
struct Barriers {
  Handshake<kStateStages> tiles;
  Handshake<kOutStages> out_tiles;
  Handshake<kHandovers> state;
  Handshake<kHandovers> x;
};

struct Place {
  int warp;  // of the warpgroup
  int lane;

  __device__ __forceinline__ Place()
      : warp(to_int(threadIdx.x) % kRole / kWarp), lane(to_int(threadIdx.x) % kWarp) {}
  // The first of the two rows of the accumulators that the lane holds; the other one is eight below.
  __device__ __forceinline__ int row() const { return warp * 16 + lane / 4; }
};

using RowSums =
    float[kRows / 2];  // a warpgroup's 64 x 32: at[4g + 2h + e] of row + 8h, column 8g + 2 (l % 4) + e

// A left operand of 64 tokens, in steps of 16 columns.
template <int kSteps>
struct Left {
  Fragment at[kSteps];
};

__device__ __forceinline__ Left<kWidth / 16> load_tokens(const Bf16* tile, const Place& place) {
  Left<kWidth / 16> left;
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step)
    left.at[step] = load_matrices(
        tile +
        swizzled<kWidth / 8>(place.warp * 16 + rows_first(place.lane), 2 * step + place.lane / 16) * 8);
  return left;
}

// Columns from 64 half on of K, as rows.
__device__ __forceinline__ Left<kSide> load_columns(const Bf16* tile, int half, const Place& place) {
  Left<kSide> left;
#pragma unroll
  for (int step = 0; step < kSide; ++step)
    left.at[step] =
        load_transposed(tile + swizzled<kWidth / 8>(step * 16 + halves_first(place.lane),
                                                    8 * half + 2 * place.warp + place.lane / 8 % 2) *
                                   8);
  return left;
}

// The table holds its blocks as right operands, whose two halves are swapped.
__device__ __forceinline__ Left<kSide> load_lower(const Fragment (&blocks)[kLowerBlocks][kWarp],
                                                  const Place& place) {
  Left<kSide> left;
#pragma unroll
  for (int j = 0; j < kSide; ++j) {
    left.at[j] = {};
    if (j > place.warp) continue;
    const Fragment block = blocks[lower_block(place.warp, j)][place.lane];
    left.at[j] = {block.at[0], block.at[2], block.at[1], block.at[3]};
  }
  return left;
}

// sums += left right, for all steps of a panel.
__device__ __forceinline__ void multiply_panel(RowSums& sums, const Fragment* left, const Bf16* right) {
  const std::uint64_t panel = describe_rows(right);
#pragma unroll
  for (int step = 0; step < kPanel / 16; ++step)
    multiply_registers(sums, left[step].at, panel + to_unsigned(2 * step));
}

// sums += tokens ST.
__device__ __forceinline__ void multiply_state(RowSums& sums, const Left<kWidth / 16>& tokens,
                                               const Operand (&state)[kHalves]) {
#pragma unroll
  for (int half = 0; half < kHalves; ++half) multiply_panel(sums, tokens.at + half * kSide, state[half].high);
#pragma unroll
  for (int half = 0; half < kHalves; ++half) multiply_panel(sums, tokens.at + half * kSide, state[half].low);
}

// sums += matrix values, with three of the four products of terms.
__device__ __forceinline__ void multiply_lower(RowSums& sums, const Left<kSide>& high, const Left<kSide>& low,
                                               const Operand& values) {
  multiply_panel(sums, high.at, values.high);
  multiply_panel(sums, high.at, values.low);
  multiply_panel(sums, low.at, values.high);
}

__device__ __forceinline__ void store_transposed(Bf16* row, const Fragment& matrices) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
      "r"(matrices.at[0]), "r"(matrices.at[1]), "r"(matrices.at[2]), "r"(matrices.at[3])
      : "memory");
}

// Stores accumulators as a right operand: their columns become its rows.
__device__ __forceinline__ void store_operand(const RowSums& sums, Operand& to, const Place& place) {
  const int chunk = 2 * place.warp + place.lane / 8 % 2;
#pragma unroll
  for (int g = 0; g < kRows / 8; g += 2) {
    const float* s = sums + 4 * g;
    const Fragment high = {pack_pair(s[0], s[1]), pack_pair(s[2], s[3]), pack_pair(s[4], s[5]),
                           pack_pair(s[6], s[7])};
    const Fragment low = {pack_rest(s[0], s[1], high.at[0]), pack_rest(s[2], s[3], high.at[1]),
                          pack_rest(s[4], s[5], high.at[2]), pack_rest(s[6], s[7], high.at[3])};
    const int row = 8 * g + place.lane / 16 * 8 + place.lane % 8;
    const int at = row * kPanel + (chunk ^ row % 8) * 8;
    store_transposed(to.high + at, high);
    store_transposed(to.low + at, low);
  }
}

// Multiplies each of the lane's two rows by its factor.
__device__ __forceinline__ void scale_rows(RowSums& sums, const float* factors, const Place& place) {
  const float factor[2] = {factors[place.row()], factors[place.row() + 8]};
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i) sums[i] *= factor[i / 2 % 2];
}

// r = v - e^G o r.
__device__ __forceinline__ void subtract_from_values(RowSums& r, const StateTiles<kWidth, kRows>& tiles,
                                                     const Place& place) {
  scale_rows(r, tiles.table.from_start, place);
#pragma unroll
  for (int g = 0; g < kRows / 8; g += 2) {
    const Fragment v = load_matrices(
        tiles.v + swizzled<kRows / 8>(place.warp * 16 + rows_first(place.lane), g + place.lane / 16) * 8);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = unpack_pair(v.at[i]);
      r[4 * g + 2 * i] = pair.x - r[4 * g + 2 * i];
      r[4 * g + 2 * i + 1] = pair.y - r[4 * g + 2 * i + 1];
    }
  }
}

// Synchronises the state's warpgroup, so that products may read the operands it wrote.
__device__ __forceinline__ void meet_state_warps() {
  publish_to_tensor_cores();
  asm volatile("bar.sync 1, 128;" ::: "memory");
}

struct StateSums {
  RowSums half[kHalves];  // of Dk
};

// Loads or stores 32 rows of a state, held as accumulators; columns past Dk are zero.
template <bool kStore>
__device__ __forceinline__ void move_state(const DeltaCall& call, float* rows, long long stride,
                                           StateSums& state, const Place& place) {
#pragma unroll
  for (int half = 0; half < kHalves; ++half)
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) {
      const int column = half * kPanel + place.row() + i / 2 % 2 * 8;
      float* at = rows + (i / 4 * 8 + place.lane % 4 * 2 + i % 2) * stride + column;
      const bool inside = column < call.key_width;
      if constexpr (kStore) {
        if (inside) *at = state.half[half][i];
      } else {
        state.half[half][i] = inside ? *at : 0.0f;
      }
    }
}

// The work of the state's warpgroup for one chunk. Left operands are loaded while products that do not need
// them run.
__device__ __forceinline__ void advance_state(StateSums& state, WalkMemory& memory, Barriers& barriers,
                                              const Turn<kStateStages>& stage, const Turn<kHandovers>& turn,
                                              const Place& place) {
  const StateTiles<kWidth, kRows>& tiles = memory.tiles[stage.index];
  barriers.state.wait_until_empty(turn);
#pragma unroll
  for (int half = 0; half < kHalves; ++half)
    store_operand(state.half[half], memory.state[turn.index][half], place);
  barriers.tiles.wait_until_full(stage);
  const Left<kWidth / 16> keys = load_tokens(tiles.k, place);
  meet_state_warps();
  barriers.state.full[turn.index].arrive_once_per_warp();

  RowSums r = {};
  begin_products();
  multiply_state(r, keys, memory.state[turn.index]);
  close_products();
  const Left<kSide> inverse = load_lower(tiles.table.inverse.high, place);
  const Left<kSide> inverse_low = load_lower(tiles.table.inverse.low, place);
  wait_for_sums(r);
  subtract_from_values(r, tiles, place);
  store_operand(r, memory.r, place);
  meet_state_warps();

  RowSums x = {};
  begin_products();
  multiply_lower(x, inverse, inverse_low, memory.r);
  close_products();
  Left<kSide> columns[kHalves];
#pragma unroll
  for (int half = 0; half < kHalves; ++half) columns[half] = load_columns(tiles.k, half, place);
  const float decay = tiles.table.from_start[kChunk - 1];
#pragma unroll
  for (RowSums& sums : state.half)
#pragma unroll
    for (float& value : sums) value *= decay;
  wait_for_sums(x);
  barriers.x.wait_until_empty(turn);
  store_operand(x, memory.x[turn.index], place);
  scale_rows(x, tiles.table.to_end, place);
  store_operand(x, memory.x_to_end, place);
  meet_state_warps();
  barriers.x.full[turn.index].arrive_once_per_warp();
  barriers.tiles.empty[stage.index].arrive_once_per_warp();

  begin_products();
#pragma unroll
  for (int half = 0; half < kHalves; ++half)
    multiply_panel(state.half[half], columns[half].at, memory.x_to_end.high);
#pragma unroll
  for (int half = 0; half < kHalves; ++half)
    multiply_panel(state.half[half], columns[half].at, memory.x_to_end.low);
  close_products();
  for (RowSums& sums : state.half) wait_for_sums(sums);
}

__device__ __forceinline__ void walk_state(const DeltaCall& call, const Walk& walk, WalkMemory& memory,
                                           Barriers& barriers) {
  const Place place;
  float* rows = call.state_row(walk.part, walk.head, walk.row);
  StateSums state;
  move_state<false>(call, rows, call.state_strides[1], state, place);
  Turn<kStateStages> stage;
  Turn<kHandovers> turn;
  for (int c = walk.begin; c < walk.end; ++c, stage.next(), turn.next()) {
    advance_state(state, memory, barriers, stage, turn, place);
    const int save = walk.save_behind(call, c);
    if (save >= 0)
      move_state<true>(call, call.saved_row(save, walk.head, walk.row), call.saved_strides[2], state, place);
  }
  move_state<true>(call, rows, call.state_strides[1], state, place);
}

// Two rows of 32 outputs per quad of lanes, 16 bytes per lane.
__device__ __forceinline__ void store_out(const RowSums& sums, Bf16* out, long long stride, int rows,
                                          const Place& place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) pairs[g] = pack_pair(sums[4 * g + 2 * half], sums[4 * g + 2 * half + 1]);
    transpose_in_quad(place.lane % 4, pairs);
    const int row = place.row() + 8 * half;
    if (row < rows)
      *reinterpret_cast<uint4*>(out + row * stride + place.lane % 4 * 8) =
          make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

__device__ __forceinline__ void walk_outputs(const DeltaCall& call, const Walk& walk, WalkMemory& memory,
                                             Barriers& barriers) {
  const Place place;
  Bf16* out = static_cast<Bf16*>(call.out) + walk.head * call.out_strides[1] + walk.row;
  Turn<kOutStages> stage;
  Turn<kHandovers> turn;
  for (int c = walk.begin; c < walk.end; ++c, stage.next(), turn.next()) {
    const OutTiles<kWidth>& tiles = memory.out_tiles[stage.index];
    barriers.out_tiles.wait_until_full(stage);
    const Left<kWidth / 16> queries = load_tokens(tiles.q, place);
    barriers.state.wait_until_full(turn);
    RowSums sums = {};
    begin_products();
    multiply_state(sums, queries, memory.state[turn.index]);
    close_products();
    const Left<kSide> mix = load_lower(tiles.table.mix.high, place);
    const Left<kSide> mix_low = load_lower(tiles.table.mix.low, place);
    wait_for_sums(sums);
    barriers.state.empty[turn.index].arrive_once_per_warp();
    scale_rows(sums, tiles.table.from_start, place);
    barriers.out_tiles.empty[stage.index].arrive_once_per_warp();
    barriers.x.wait_until_full(turn);
    begin_products();
    multiply_lower(sums, mix, mix_low, memory.x[turn.index]);
    close_products();
    wait_for_sums(sums);
    barriers.x.empty[turn.index].arrive_once_per_warp();
    store_out(sums, out + walk.token(c) * call.out_strides[0], call.out_strides[0], walk.rows(c), place);
  }
}

__device__ __forceinline__ void copy_tiles(const DeltaCall& call, const ChunkRange& range, const Walk& walk,
                                           WalkMemory& memory, Barriers& barriers) {
  const int thread = to_int(threadIdx.x) % kRole;
  Turn<kStateStages> stage;
  Turn<kOutStages> out_stage;
  for (int c = walk.begin; c < walk.end; ++c, stage.next(), out_stage.next()) {
    barriers.tiles.wait_until_empty(stage);
    copy_state_tiles<kRole>(call, range, walk, c, memory.tiles[stage.index], thread);
    barriers.tiles.full[stage.index].arrive_after_copies();
    barriers.out_tiles.wait_until_empty(out_stage);
    copy_out_tiles<kRole>(call, range, walk, c, memory.out_tiles[out_stage.index], thread);
    barriers.out_tiles.full[out_stage.index].arrive_after_copies();
  }
}

#endif

__global__ void __launch_bounds__(3 * kRole, 1) delta_walk_wgmma(DeltaCall call, ChunkRange range) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ Barriers barriers;
  auto& memory = *reinterpret_cast<WalkMemory*>(shared + (kAlignment - shared_address(shared) % kAlignment) %
                                                             kAlignment);
  if (threadIdx.x == 0) {
    barriers.tiles.set_up(kRole);
    barriers.out_tiles.set_up(kRole);
    barriers.state.set_up(kRole / kWarp);
    barriers.x.set_up(kRole / kWarp);
    publish_barriers();
  }
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  if (blockIdx.x == 0) call.saves.check(call.sequences, call.fault);
  const Walk walk = Walk::of_block<kRows>(call, range, to_int(blockIdx.x));
  if (walk.begin >= walk.end) return;
  if (threadIdx.x < kRole) {
    take_registers<kWorkerRegisters>();
    walk_state(call, walk, memory, barriers);
  } else if (threadIdx.x < 2 * kRole) {
    take_registers<kWorkerRegisters>();
    walk_outputs(call, walk, memory, barriers);
  } else {
    give_registers<kCopierRegisters>();
    copy_tiles(call, range, walk, memory, barriers);
  }
#endif
}

constexpr std::size_t kSharedBytes = sizeof(WalkMemory) + kAlignment;

}  // namespace

bool walk_wgmma_supports(const Context& context, const DeltaCall& call) {
  const bool aligned_out = reinterpret_cast<std::uintptr_t>(call.out) % 16 == 0 &&
                           call.out_strides[0] % 8 == 0 && call.out_strides[1] % 8 == 0;
  return context.device().compute_capability == 90 && call.key_width > kWidth / 2 && aligned_out &&
         kSharedBytes <= context.device().shared_bytes_per_block;
}

void launch_walk_wgmma(Context& context, const DeltaCall& call, const ChunkRange& range) {
  const auto blocks = to_unsigned(call.sequences.count * call.value_heads * (call.value_width / kRows));
  launch(context, delta_walk_wgmma, {dim3(blocks), dim3(3 * kRole), kSharedBytes}, call, range);
}

}  // namespace sluice::backend::cuda::delta
