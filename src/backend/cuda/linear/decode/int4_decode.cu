// The decode class of products with 4-bit weights in groups of 64, scales and biases in BF16:
//
//   out[t,n] = sum over groups g of scale[n,g] * (codes[n,g] . x[t,g]) + bias[n,g] * sum(x[t,g])
//
// A warp multiplies 16 rows of weights by 8 to 32 columns of inputs, 256 values of K at a time. The four
// lanes of a row read 16 neighbouring values of a group each, so one tensor core product stays within a
// group, whose sum stays in the F32 accumulator until it is scaled. Codes become FP16 exactly
// (int4_half.cuh). The biases of four groups are the left operand of one more product. Only F32 sums are
// rounded.
//
// Weights are prefetched into a ring buffer in shared memory, the first ones before the inputs are available.
// The inputs of few tokens are held in shared memory, those of many in registers. Tiles of K are distributed
// round-robin over the warps of a row, whose sums are added in shared memory in a fixed order. A column does
// not depend on the others, so a token's bits do not depend on the batch. Bytes: the weights once per pass of
// 32 tokens; an expert's once per pass of 8.
#include "backend/cuda/linear/decode/int4_inputs.cuh"
#include "backend/cuda/linear/decode/int4_product.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

namespace {

// kAdds: residual += out, for one token.
template <class Inputs, bool kAdds = false>
__global__ void __launch_bounds__(kNibbleThreads, Inputs::kOwnTiles == 0 ? kFewBlocks : 1)
    nibble_decode(const __grid_constant__ LinearCall call, const __grid_constant__ NibblePlan plan,
                  void* residual, Fault* fault) {
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
      const Residual<kAdds> kept(residual, call, plan, round);
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
      write_round<kColumnTiles>(call, plan, rows, count, RoundSums<kAdds>{round, partials, kept});
      buffer ^= 1;  // a warp that is a round ahead writes to the other buffer
    }
  }
}

}  // namespace

void launch_nibbles(Context& context, const LinearCall& call, const NibblePlan& plan, void* residual) {
  const Grid grid{plan.grid, dim3(kNibbleThreads), to_size(plan.shared_bytes)};
  const auto kernel = call.experts != nullptr  ? nibble_decode<StagedInputs>
                      : residual != nullptr    ? nibble_decode<StagedInputs, true>
                      : plan.column_tiles == 4 ? nibble_decode<HeldInputs<1, 4>>
                      : plan.column_tiles == 1 ? nibble_decode<StagedInputs>
                      : plan.own_tiles == 1    ? nibble_decode<HeldInputs<1, 2>>
                                               : nibble_decode<HeldInputs<2, 2>>;
  launch(context, kernel, grid, call, plan, residual, context.fault());
}

}  // namespace sluice::backend::cuda::linear::decode
