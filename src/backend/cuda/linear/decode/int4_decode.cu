// The decode class of products with 4-bit weights in groups of 64, scales and biases in BF16:
//
//   out[t,n] = sum over groups g of scale[n,g] * (codes[n,g] . x[t,g]) + bias[n,g] * sum(x[t,g])
//
// A warp multiplies 16 rows of weights by 8 to 32 columns of inputs, 256 values of K at a time. Its four
// lanes of a row take 16 neighbouring values of a group each, so that one product on the tensor cores stays
// within a group, whose sum stays in the F32 accumulator until it is scaled. Codes become BF16 exactly. The
// biases of four groups are the left side of one more product. Nothing is rounded but F32 sums.
//
// Weights travel to a ring in shared memory ahead of their use, the first ones before the inputs are there.
// Inputs of few tokens wait in shared memory, those of many in registers. Tiles of K are dealt out to the
// warps of a row in turn; their sums meet in shared memory in a fixed order. A column does not depend on the
// others, hence a token's bits not on the batch. Bytes: the weights once a pass of 32 tokens; an expert's
// once a pass of 8.
#include "backend/cuda/linear/decode/int4_inputs.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

namespace {

// Eight codes as four pairs of BF16.
__device__ __forceinline__ void unpack(unsigned word, unsigned (&pairs)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) pairs[j] = bf16_of_codes<Storage::affine4>(word >> (4 * j) & 0x000f000fu);
}

// total += the ring's tile times the inputs of tile `tile`, the `own`th of the warp.
template <class Ring, class Inputs>
__device__ __forceinline__ void multiply_tile_of(Ring& ring, const Inputs& inputs, int tile, int own,
                                                 float (&total)[Inputs::kColumnTiles][4]) {
  constexpr int kColumnTiles = Inputs::kColumnTiles;
  ring.begin_tile();
  const uint2 scales[2] = {ring.scales(0), ring.scales(1)};
  const unsigned biases[2] = {ring.biases(0), ring.biases(1)};
#pragma unroll
  for (int g = 0; g < kTileGroups; ++g) {
    float part[kColumnTiles][4] = {};
    const uint2 codes[2] = {ring.codes(0, g), ring.codes(1, g)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned low[4];
      unsigned high[4];
      unpack(half == 0 ? codes[0].x : codes[0].y, low);
      unpack(half == 0 ? codes[1].x : codes[1].y, high);
#pragma unroll
      for (int b = 0; b < kColumnTiles; ++b) {
        const uint4 x = inputs.eight(tile, own, g, half, b);
        multiply_tile(part[b], {low[0], high[0], low[1], high[1]}, x.x, x.y);
        multiply_tile(part[b], {low[2], high[2], low[3], high[3]}, x.z, x.w);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned both = g < 2 ? scales[r].x : scales[r].y;
      const float scale = __uint_as_float(g % 2 == 0 ? both << 16 : both & 0xffff0000u);
#pragma unroll
      for (int b = 0; b < kColumnTiles; ++b)
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) total[b][i] = fmaf(scale, part[b][i], total[b][i]);
    }
  }
#pragma unroll
  for (int b = 0; b < kColumnTiles; ++b) {
    const uint2 x = inputs.sums(tile, own, b);
    multiply_tile(total[b], {biases[0], biases[1], biases[0], biases[1]}, x.x, x.y);
  }
  ring.end_tile();
}

template <class Inputs>
__global__ void __launch_bounds__(kNibbleThreads, Inputs::kOwnTiles == 0 ? kFewBlocks : 1)
    nibble_decode(const __grid_constant__ LinearCall call, const __grid_constant__ NibblePlan plan,
                  Fault* fault) {
  constexpr int kColumnTiles = Inputs::kColumnTiles;
  constexpr int kWarpFloats = kColumnTiles * kTileColumns * kPartialPitch;
  extern __shared__ __align__(16) std::byte shared[];
  RowList rows(call, plan, shared);
  WeightRing<ring_tiles(Inputs::kOwnTiles > 0)> ring(call, plan, shared);
  int matrix = rows.slot();
  if (call.experts == nullptr) ring.begin(matrix);
  wait_for_inputs();
  allow_successor();
  if (call.experts != nullptr) {
    matrix = rows.find_matrix(fault);
    if (matrix < 0) return;
    ring.begin(matrix);
  }
  int buffer = 0;
  for (bool first = true;; first = false) {
    if (!first) __syncthreads();
    const int count = rows.next();
    if (count == 0) return;
    if (!first) ring.begin(matrix);
    Inputs inputs;
    inputs.load(call, plan, rows, count, shared);
#pragma unroll 1
    for (int round = blockIdx.x; round < plan.rounds; round += to_int(gridDim.x)) {
      float total[kColumnTiles][4] = {};
      if constexpr (Inputs::kOwnTiles == 0) {
#pragma unroll 1
        for (int tile = ring.part(); tile < plan.tiles; tile += 1 << plan.parts_log2)
          multiply_tile_of(ring, inputs, tile, 0, total);
      } else {
#pragma unroll
        for (int own = 0; own < Inputs::kOwnTiles; ++own)
          if (const int tile = ring.part() + (own << plan.parts_log2); tile < plan.tiles)
            multiply_tile_of(ring, inputs, tile, own, total);
      }
      float* const partials =
          reinterpret_cast<float*>(shared + plan.partials) + buffer * kDecodeWarps * kWarpFloats;
      leave_partials<kColumnTiles>(total, partials + threadIdx.x / kWarp * kWarpFloats);
      __syncthreads();
      write_round<kColumnTiles>(call, plan, rows, count, round, partials);
      buffer ^= 1;  // who is a round ahead writes elsewhere
    }
  }
}

}  // namespace

void launch_nibbles(Context& context, const LinearCall& call, const NibblePlan& plan) {
  const Grid grid{plan.grid, dim3(kNibbleThreads), to_size(plan.shared_bytes)};
  const auto kernel = plan.column_tiles == 4   ? nibble_decode<HeldInputs<1, 4>>
                      : plan.column_tiles == 1 ? nibble_decode<StagedInputs>
                      : plan.own_tiles == 1    ? nibble_decode<HeldInputs<1, 2>>
                                               : nibble_decode<HeldInputs<2, 2>>;
  launch(context, kernel, grid, call, plan, context.fault());
}

}  // namespace sluice::backend::cuda::linear::decode
