// A norm and the following product as one launch, for one token: every block normalises the whole row itself
// while its weights are being loaded.
#include "backend/cuda/fused/recorded.h"
#include "backend/cuda/fused/row.h"
#include "backend/cuda/linear/decode/int4_inputs.cuh"
#include "backend/cuda/linear/decode/int4_product.cuh"

namespace sluice::backend::cuda::fused {

namespace {

using namespace linear::decode;
using linear::LinearCall;

__global__ void __launch_bounds__(kNibbleThreads, kFewBlocks)
    norm_project_kernel(const __grid_constant__ LinearCall call, const __grid_constant__ NibblePlan plan,
                        const __grid_constant__ InputNorm norm) {
  extern __shared__ __align__(16) std::byte shared[];
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const int rows_log2 = plan.row_tiles_log2 + 4;
  WeightRing<ring_tiles(false)> ring(call, plan, shared);
  ring.begin(0);
  const NormedRow row(norm);
  auto* partials = reinterpret_cast<float*>(shared + plan.partials);
  wait_for_inputs();
  allow_successor();
  StagedInputs inputs;
  inputs.load(plan, row, shared);
  int buffer = 0;
#pragma unroll 1
  for (int round = blockIdx.x; round < plan.rounds; round += to_int(gridDim.x)) {
    float total[1][4] = {};
#pragma unroll 1
    for (int tile = ring.part(); tile < plan.tiles; tile += 1 << plan.parts_log2)
      multiply_tile_of(ring, inputs, tile, 0, total);
    float* const left = partials + buffer * kDecodeWarps * kTileRows;
    if (lane % 4 == 0) {
      left[thread / kWarp * kTileRows + lane / 4] = total[0][0];
      left[thread / kWarp * kTileRows + lane / 4 + 8] = total[0][2];
    }
    __syncthreads();
    const int n = (round << rows_log2) + thread;
    if (thread < 1 << rows_log2 && n < call.outputs) {
      const float* from = left + (thread / kTileRows << plan.parts_log2) * kTileRows + thread % kTileRows;
      float sum = 0;
#pragma unroll
      for (int part = 0; part < kDecodeWarps; ++part)
        if (part < 1 << plan.parts_log2) sum += from[part * kTileRows];
      call.store(n, sum);
    }
    buffer ^= 1;  // a warp that is a round ahead writes to the other buffer
  }
}

}  // namespace

std::size_t norm_project(Context& context, const Place& place) {
  const auto* norm = place.next<ops::RmsNorm>();
  const auto* product = place.next<ops::Matmul>(1);
  if (norm == nullptr || product == nullptr || product->x.data != norm->out.data ||
      !normable(norm->x, *norm, product->out) || !context.decode_class(1))
    return 0;
  LinearCall call = linear::linear_call(product->x, product->out);
  call.w[0] = linear::matrices_of(product->w);
  const auto plan = nibble_plan(call, context.device());
  if (!plan || plan->grid.y != 1) return 0;
  const Grid grid{plan->grid, dim3(kNibbleThreads), to_size(plan->shared_bytes + kNormBytes)};
  if (grid.shared_bytes > context.device().shared_bytes_per_block) return 0;
  launch(context, norm_project_kernel, grid, call, *plan, input_norm(norm->x, *norm, plan->shared_bytes));
  return 2;
}

}  // namespace sluice::backend::cuda::fused
