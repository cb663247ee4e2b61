// The product of one tile of 4-bit weights, 16 rows by 256 values of K, with the inputs of its columns.
#pragma once

#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/linear/decode/int4_half.cuh"
#include "backend/cuda/linear/decode/int4_ring.cuh"
#include "backend/cuda/linear/decode/weight_fragment.cuh"

namespace sluice::backend::cuda::linear::decode {

// part += the codes of 16 rows, eight each, times the inputs.
__device__ __forceinline__ void multiply_codes(float (&part)[4], const unsigned (&low)[4],
                                               const unsigned (&high)[4], const uint4& x) {
  multiply_halves(part, {low[0], high[0], low[1], high[1]}, x.x, x.y);
  multiply_halves(part, {low[2], high[2], low[3], high[3]}, x.z, x.w);
}

// total += the current tile of the ring buffer times the inputs of tile `tile`, the warp's tile number `own`.
template <class Ring, class Inputs>
__device__ __forceinline__ void multiply_tile_of(Ring&& ring, const Inputs& inputs, int tile, int own,
                                                 float (&total)[Inputs::kColumnTiles][4]) {
  constexpr int kColumnTiles = Inputs::kColumnTiles;
  ring.begin_tile();
  const uint2 scales[2] = {ring.scales(0), ring.scales(1)};
  const unsigned biases[2] = {ring.biases(0), ring.biases(1)};
  float sums[kColumnTiles][4];  // of the tile, in the scale of the inputs
#pragma unroll
  for (int g = 0; g < kTileGroups; ++g) {
    float part[kColumnTiles][4] = {};
    const uint2 codes[2] = {ring.codes(0, g), ring.codes(1, g)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned low[4];
      unsigned high[4];
      unpack_halves(half == 0 ? codes[0].x : codes[0].y, low);
      unpack_halves(half == 0 ? codes[1].x : codes[1].y, high);
#pragma unroll
      for (int b = 0; b < kColumnTiles; ++b)
        multiply_codes(part[b], low, high, inputs.eight(tile, own, g, half, b));
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned both = g < 2 ? scales[r].x : scales[r].y;
      const float scale = __uint_as_float(g % 2 == 0 ? both << 16 : both & 0xffff0000u);
#pragma unroll
      for (int b = 0; b < kColumnTiles; ++b)
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i)
          sums[b][i] = g == 0 ? scale * part[b][i] : fmaf(scale, part[b][i], sums[b][i]);
    }
  }
#pragma unroll
  for (int b = 0; b < kColumnTiles; ++b) {
    const float2 factors = inputs.factors(tile, own, b);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      total[b][i] = fmaf(sums[b][i] * kHalfCode, i % 2 == 0 ? factors.x : factors.y, total[b][i]);
  }
#pragma unroll
  for (int b = 0; b < kColumnTiles; ++b) {
    const uint2 x = inputs.sums(tile, own, b);
    multiply_tile(total[b], {biases[0], biases[1], biases[0], biases[1]}, x.x, x.y);
  }
  ring.end_tile();
}

}  // namespace sluice::backend::cuda::linear::decode
