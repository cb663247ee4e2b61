// Tensor core products of BF16 with F32 accumulators (mma.sync), and their operands. In every operand lane l
// holds values of row (or column) l / 4 at positions 2 (l % 4) and the next one.
#pragma once

#include <cstdint>

#include "backend/cuda/device/async_copy.cuh"
#include "backend/cuda/device/element.cuh"

namespace sluice::backend::cuda {

// Four 8x8 matrices of BF16. As the left operand (16x16): rows 0-7 and 8-15 of the left half, then of the
// right half. As two right operands (16x8 each, columns 0-7 then 8-15): upper then lower half of each.
struct alignas(16) Fragment {
  std::uint32_t at[4];
};

// A 16x8 accumulator: at[0..1] of row l / 4, at[2..3] of row l / 4 + 8.
struct alignas(16) Sums {
  float at[4];
};

// sums += left right, with `right` given as its two halves.
__device__ __forceinline__ void multiply_add(Sums& sums, const Fragment& left, std::uint32_t upper,
                                             std::uint32_t lower) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
      : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(upper), "r"(lower));
}

// The same for 16 columns, as two neighbouring accumulators.
__device__ __forceinline__ void multiply_add(Sums& first, Sums& second, const Fragment& left,
                                             const Fragment& right) {
  multiply_add(first, left, right.at[0], right.at[1]);
  multiply_add(second, left, right.at[2], right.at[3]);
}

// Each lane passes the address of one 16-byte row: lanes 8i..8i+7 those of matrix i.
__device__ __forceinline__ Fragment load_matrices(const void* row) {
  Fragment result;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(result.at[0]), "=r"(result.at[1]), "=r"(result.at[2]), "=r"(result.at[3])
               : "r"(shared_address(row))
               : "memory");
  return result;
}
__device__ __forceinline__ Fragment load_transposed(const void* row) {
  Fragment result;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(result.at[0]), "=r"(result.at[1]), "=r"(result.at[2]), "=r"(result.at[3])
               : "r"(shared_address(row))
               : "memory");
  return result;
}
__device__ __forceinline__ std::uint32_t transpose_matrix(std::uint32_t matrix) {
  std::uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(matrix));
  return result;
}

__device__ __forceinline__ std::uint32_t pack_pair(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ __forceinline__ float2 unpack_pair(std::uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

// The remainder of a pair after rounding to `rounded`, itself rounded.
__device__ __forceinline__ std::uint32_t pack_rest(float first, float second, std::uint32_t rounded) {
  const float2 taken = unpack_pair(rounded);
  return pack_pair(first - taken.x, second - taken.y);
}

// A 16x16 accumulator, left and right half, as a left operand: the sum of two BF16 terms (16 bits).
struct TwoTerms {
  Fragment high;
  Fragment low;
};
__device__ __forceinline__ TwoTerms split_sums(const Sums& left, const Sums& right) {
  const Fragment high = {pack_pair(left.at[0], left.at[1]), pack_pair(left.at[2], left.at[3]),
                         pack_pair(right.at[0], right.at[1]), pack_pair(right.at[2], right.at[3])};
  return {high,
          {pack_rest(left.at[0], left.at[1], high.at[0]), pack_rest(left.at[2], left.at[3], high.at[1]),
           pack_rest(right.at[0], right.at[1], high.at[2]), pack_rest(right.at[2], right.at[3], high.at[3])}};
}

// The position of 16-byte chunk `chunk` of row `row` in a tile with kChunks of them per row, without bank
// conflicts: any eight neighbouring rows of one chunk, and any eight neighbouring chunks of a row, are in
// different banks.
template <int kChunks>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  if constexpr (kChunks >= 8)
    return row * kChunks + (chunk ^ (row & 7));
  else
    return row * kChunks + (chunk ^ (row >> 1 & 3));
}

}  // namespace sluice::backend::cuda
