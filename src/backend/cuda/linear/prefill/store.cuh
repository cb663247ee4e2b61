// Writing a tile's sums. A quad of lanes holds a row of the accumulators: lane c has columns 8g+2c and
// 8g+2c+1 of every group g of eight. Four groups at a time are exchanged within the quad, so that each lane
// writes one whole group, 16 bytes.
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/quad.cuh"
#include "backend/cuda/linear/prefill/tile.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

// Offset of a row of the result in elements, or kNoRow if there is nothing to write.
constexpr long long kNoRow = -1;

// Writes four groups of a row from `column` on; to be called by all lanes of the warp.
__device__ __forceinline__ void store_groups(const PrefillCall& call, long long row, int column,
                                             std::uint32_t (&pairs)[4]) {
  const int c = threadIdx.x % 4;
  transpose_in_quad(c, pairs);
  const auto left = to_int(call.linear.outputs) - (column + 8 * c);
  if (row == kNoRow || left <= 0) return;
  Bf16* to = static_cast<Bf16*>(call.linear.out) + row + column + 8 * c;
  if (call.vector_out && left >= 8) {
    *reinterpret_cast<uint4*>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < left)
      reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(pairs[i / 2] >> (i % 2 * 16));
}

__device__ __forceinline__ long long out_row(const PrefillCall& call, const Tile& tile, int r) {
  if (r >= tile.rows) return kNoRow;
  const TileRow row = row_of(call, tile, r);
  return row.token * call.linear.out_token + row.slot * call.linear.out_slot;
}

// F32 results are small (router logits, gates): each lane writes its pairs.
template <int kGroups, class Sum>
__device__ __forceinline__ void store_floats(const PrefillCall& call, long long row, int column, Sum sum) {
  if (row == kNoRow) return;
#pragma unroll
  for (int g = 0; g < kGroups; ++g)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int n = column + 8 * g + 2 * (threadIdx.x % 4) + i;
      if (n < call.linear.outputs) static_cast<float*>(call.linear.out)[row + n] = sum(g, i);
    }
}

// Writes kGroups groups of tile columns; sum(g, i) is this lane's i-th value of group g, `column` the output
// column of the first.
template <int kGroups, class Sum>
__device__ __forceinline__ void store_row(const PrefillCall& call, long long row, int column, Sum sum) {
  static_assert(kGroups % 8 == 0 && kOperandRun == 16);
  if (call.linear.out_type == ops::DType::f32) return store_floats<kGroups>(call, row, column, sum);
  std::uint32_t pairs[4];
  if (call.linear.operands == 1) {
#pragma unroll
    for (int g = 0; g < kGroups; g += 4) {
#pragma unroll
      for (int j = 0; j < 4; ++j) pairs[j] = pack_pair(sum(g + j, 0), sum(g + j, 1));
      store_groups(call, row, column + 8 * g, pairs);
    }
    return;
  }
  // Groups are in the order gate, gate, up, up.
#pragma unroll
  for (int g = 0; g < kGroups; g += 8) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int gate = g + j / 2 * 4 + j % 2;
      pairs[j] = pack_pair(silu(sum(gate, 0)) * sum(gate + 2, 0), silu(sum(gate, 1)) * sum(gate + 2, 1));
    }
    store_groups(call, row, column + 4 * g, pairs);
  }
}

}  // namespace sluice::backend::cuda::linear::prefill
