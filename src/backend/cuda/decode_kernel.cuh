// The kernel that linear_decode.cuh describes.
#pragma once

#include "backend/cuda/decode_inputs.cuh"

namespace sluice::backend::cuda {

// Adds up what the warps of each tile hold, in a fixed order, and writes the rows of a round.
template <int Blocks>
__device__ __forceinline__ void write_round(const LinearCall& call, const DecodePlan& plan,
                                            const RowList& rows, int count, int round,
                                            const float* partials) {
  const int rows_of_block = plan.tiles * kTileRows;
  constexpr int kPartial = Blocks * kTileColumns * kTileRows;
  for (int i = static_cast<int>(threadIdx.x); i < rows_of_block * count; i += kDecodeWarps * kWarp) {
    const int row = i % rows_of_block;
    const int token = i / rows_of_block;
    const long long n = static_cast<long long>(round) * rows_of_block + row;
    if (n >= call.outputs) continue;
    const int columns = plan.terms << plan.ways_log2;
    const auto sum = [&](int operand) {
      const int warp = (operand * plan.tiles + row / kTileRows) * plan.parts;
      const float* from = partials + warp * kPartial + token * columns * kTileRows + row % kTileRows;
      float value = 0;
      for (int part = 0; part < plan.parts; ++part)
        for (int c = 0; c < columns; ++c) value += from[part * kPartial + c * kTileRows];
      return value;
    };
    float result = sum(0);
    if (call.operands == 2) result = result / (1.0f + expf(-result)) * sum(1);
    call.store(call.out_offset(rows[token]) + n, result);
  }
}

template <Storage S, bool Bf16Scales, int Blocks>
__global__ void __launch_bounds__(kDecodeWarps* kWarp, 2)
    linear_decode(const __grid_constant__ LinearCall call, const __grid_constant__ DecodePlan plan,
                  Fault* fault) {
  using Shape = Fragment<S>;
  extern __shared__ __align__(16) std::byte shared[];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int part = warp % plan.parts;
  const int tile = warp / plan.parts % plan.tiles;
  const int operand = warp / plan.parts / plan.tiles;
  const int rows_of_block = plan.tiles * kTileRows;
  constexpr int kKinds = Shape::kShape.kinds;
  const int scale_bytes = call.operands * kKinds * rows_of_block * plan.scale_pitch;
  auto* partials = reinterpret_cast<float*>(shared + plan.partials);

  RowList rows(call, plan, shared);
  WeightStream<S> weights(call, plan, operand, tile, part);
  const auto begin = [&](int matrix) {
    weights.begin(call.w[operand][matrix].values);
    if constexpr (kKinds > 0)
      copy_scales<S>(call, plan, matrix, static_cast<int>(blockIdx.x), shared + plan.scales);
  };
  int matrix = call.experts == nullptr ? rows.matrix() : -1;
  if (matrix >= 0) begin(matrix);
  if constexpr (kKinds > 0)
    clear_padding(call, plan, shared + plan.scales, 2 * call.operands * kKinds * rows_of_block);
  wait_for_inputs();
  allow_successor();
  if (call.experts != nullptr) {
    matrix = rows.find_matrix(fault);
    if (matrix < 0) return;
    begin(matrix);
  }
  for (bool first = true;; first = false) {
    const int count = rows.next();
    if (count == 0) return;
    if (!first) begin(matrix);
    stage_inputs<S>(call, plan, rows, count, shared);
    const Columns<S> columns(call, plan, shared, count * plan.terms);
    int buffer = 0;
    for (int round = static_cast<int>(blockIdx.x); round < plan.rounds;
         round += static_cast<int>(gridDim.x), buffer ^= 1) {
      wait_for_copies();
      __syncthreads();
      if constexpr (kKinds > 0)
        copy_scales<S>(call, plan, matrix, round + static_cast<int>(gridDim.x),
                       shared + plan.scales + (buffer ^ 1) * scale_bytes);
      const int field = rows_of_block * plan.scale_pitch;
      const int scales = plan.scales + buffer * scale_bytes + operand * kKinds * field +
                         (tile * kTileRows + lane / 4) * plan.scale_pitch;
      float total[Blocks][4] = {};
      for (int stride = part; stride < plan.strides; stride += plan.parts) {
#pragma unroll
        for (int s = 0; s < Shape::kSteps; ++s) {
          multiply_step<S, Bf16Scales, Blocks>(call, plan, columns, shared, scales, field,
                                               stride * Shape::kSteps + s, weights.words[s], total);
          weights.load(s);
        }
        weights.advance();
      }
      float* mine = partials + warp * Blocks * kTileColumns * kTileRows;
#pragma unroll
      for (int b = 0; b < Blocks; ++b)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          mine[(b * kTileColumns + lane % 4 * 2 + i % 2) * kTileRows + lane / 4 + i / 2 * 8] = total[b][i];
      __syncthreads();
      write_round<Blocks>(call, plan, rows, count, round, partials);
    }
  }
}

template <Storage S, bool Bf16Scales>
void launch_storage(Context& context, const LinearCall& call, const DecodePlan& plan) {
  const Grid grid{plan.grid, dim3(kDecodeWarps * kWarp), static_cast<std::size_t>(plan.shared_bytes)};
  constexpr int kFew = Fragment<S>::kAffine && !Bf16Scales ? 4 : 1;  // as the plan says
  launch(context, plan.blocks == 1 ? linear_decode<S, Bf16Scales, kFew> : linear_decode<S, Bf16Scales, 4>,
         grid, call, plan, context.fault());
}

}  // namespace sluice::backend::cuda
