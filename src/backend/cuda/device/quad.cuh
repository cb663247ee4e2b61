// Exchange between the four lanes that hold a row of an accumulator.
#pragma once

#include <cstdint>

namespace sluice::backend::cuda {

// Sets p[i] to the previous p[i ^ c].
__device__ __forceinline__ void permute_by(int c, std::uint32_t (&p)[4]) {
  const auto swap_if = [](bool swap, std::uint32_t& a, std::uint32_t& b) {
    const std::uint32_t first = a;
    a = swap ? b : a;
    b = swap ? first : b;
  };
  swap_if(c & 1, p[0], p[1]);
  swap_if(c & 1, p[2], p[3]);
  swap_if(c & 2, p[0], p[2]);
  swap_if(c & 2, p[1], p[3]);
}

// Lane c of a quad receives p[c] of each of the four lanes, in their order.
__device__ __forceinline__ void transpose_in_quad(int c, std::uint32_t (&p)[4]) {
  permute_by(c, p);
#pragma unroll
  for (int s = 1; s < 4; ++s) p[s] = __shfl_xor_sync(0xffffffffu, p[s], s);
  permute_by(c, p);
}

}  // namespace sluice::backend::cuda
