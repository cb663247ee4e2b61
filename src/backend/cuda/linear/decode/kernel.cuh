// The kernel that linear_decode.cuh describes.
#pragma once

#include "backend/cuda/linear/decode/inputs.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::decode {

// Adds up what the warps of each tile hold, in a fixed order, and writes the rows of a round.
__device__ __forceinline__ void write_round(const LinearCall& call, const DecodePlan& plan,
                                            const RowList& rows, int count, int round,
                                            const float* partials) {
  const int rows_log2 = plan.tiles_log2 + 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < count << rows_log2; i += kDecodeWarps * kWarp) {
    const int row = i & (plan.rows_of_block() - 1);
    const int token = i >> rows_log2;
    const int n = (round << rows_log2) + row;
    if (n >= call.outputs) continue;
    const auto sum = [&](int operand) {
      const int warp = ((operand << plan.tiles_log2) + row / kTileRows) << plan.parts_log2;
      const float* from =
          partials + warp * plan.partial_pitch + token * plan.terms * kTileRows + row % kTileRows;
      float value = 0;
      for (int term = 0; term < plan.terms; ++term)
#pragma unroll
        for (int part = 0; part < kDecodeWarps; ++part)
          if (part < plan.parts()) value += from[part * plan.partial_pitch + term * kTileRows];
      return value;
    };
    float result = sum(0);
    if (call.operands == 2) result = result / (1.0f + expf(-result)) * sum(1);
    call.store(rows[token].out + n, result);
  }
}

// Leaves a warp's results in shared memory: [column of inputs][row], the ways of a column added up.
template <int Blocks>
__device__ __forceinline__ void leave_partials(const DecodePlan& plan, const float (&total)[Blocks][4],
                                               float* to) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const int row = lane / 4;
#pragma unroll
  for (int b = 0; b < Blocks; ++b)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float* at = to + (b << (3 - plan.ways_log2)) * kTileRows + row + 8 * r;
      const float left = total[b][2 * r];
      const float right = total[b][2 * r + 1];
      if (plan.ways_log2 == 0) {
        at[lane % 4 * 2 * kTileRows] = left;
        at[(lane % 4 * 2 + 1) * kTileRows] = right;
      } else {
        float both = left + right;
        if (plan.ways_log2 == 2) both += __shfl_xor_sync(0xffffffffu, both, 1);
        at[(lane % 4 >> (plan.ways_log2 - 1)) * kTileRows] = both;
      }
    }
}

template <Storage S, bool Bf16Scales, int Blocks>
__global__ void __launch_bounds__(kDecodeWarps* kWarp, blocks_per_multiprocessor(Blocks))
    linear_decode(const __grid_constant__ LinearCall call, const __grid_constant__ DecodePlan plan,
                  Fault* fault) {
  using Shape = Fragment<S>;
  extern __shared__ __align__(16) std::byte shared[];
  const int warp = to_int(threadIdx.x) / kWarp;
  auto* partials = reinterpret_cast<float*>(shared + plan.partials);

  RowList rows(call, plan, shared);
  WeightStream<S, Blocks> stream(call, plan, shared);
  int matrix = rows.slot();
  if (call.experts == nullptr) stream.begin(matrix);
  wait_for_inputs();
  allow_successor();
  if (call.experts != nullptr) {
    matrix = rows.find_matrix(fault);
    if (matrix < 0) return;
    stream.begin(matrix);
  }
  const int biases = plan.rows_of_block() * plan.scale_pitch;  // behind their scales
  const int scale_bytes = call.operands * Shape::kShape.kinds * biases;
  int buffer = 0;
  for (bool first = true;; first = false) {
    if (!first) __syncthreads();
    const int count = rows.next();
    if (count == 0) return;
    if (!first) stream.begin(matrix);
    InputStage<S, Blocks>(call, plan, rows, count, shared).fill();
    const Columns<S, Blocks> columns(plan, shared, count * plan.terms);
#pragma unroll 1
    for (int round = blockIdx.x; round < plan.rounds; round += to_int(gridDim.x)) {
      stream.wait();
      __syncthreads();
      const int scales = plan.scales + buffer * scale_bytes +
                         stream.operand() * Shape::kShape.kinds * biases + stream.row() * plan.scale_pitch;
      buffer = buffer + 1 == plan.scale_buffers ? 0 : buffer + 1;
      float total[Blocks][4] = {};
#pragma unroll 1
      for (int step = stream.part(); step < plan.steps; step += plan.parts()) {
        unsigned words[2][Shape::kWords];
        stream.take(words);
        multiply_step<S, Bf16Scales, Blocks>(call, plan, columns, shared, {step, scales, biases, words},
                                             total);
      }
      leave_partials<Blocks>(plan, total, partials + warp * plan.partial_pitch);
      __syncthreads();
      write_round(call, plan, rows, count, round, partials);
    }
  }
}

template <Storage S, bool Bf16Scales>
void launch_storage(Context& context, const LinearCall& call, const DecodePlan& plan) {
  const Grid grid{plan.grid, dim3(kDecodeWarps * kWarp), to_size(plan.shared_bytes)};
  constexpr int kFew = Fragment<S>::kAffine && !Bf16Scales ? 4 : 1;  // as the plan says
  launch(context, plan.blocks == 1 ? linear_decode<S, Bf16Scales, kFew> : linear_decode<S, Bf16Scales, 4>,
         grid, call, plan, context.fault());
}

}  // namespace sluice::backend::cuda::linear::decode
