// How packed rows of 4- or 8-bit codes are distributed over the lanes of a warp as tensor core operands.
//
// Products do not depend on the order of coordinates, so every lane reads neighbouring bytes: of a key, lane
// l reads the 16-byte chunks l%4, l%4 + 4 .. of row l/4; of the values, chunks l/4, l/4 + 8 .. of its four
// rows. The functions here give the coordinates of these bytes, for the queries and for the sums. A byte is
// converted to one or two F16 levels by a table with every entry once per lane, so without bank conflicts.
#pragma once

#include <cstdint>

#include "backend/cuda/cache/codebook.cuh"
#include "backend/cuda/cache/rotation.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

template <int kBits, int kWidth>
struct PackedFormat {
  static_assert(kBits == 4 || kBits == 8);
  static constexpr int kPerByte = 8 / kBits;
  static constexpr int kRowBytes = kWidth * kBits / 8;
  static constexpr int kKeyChunks = kRowBytes / 64;  // 16-byte chunks per lane and row
  static constexpr int kValueChunk = kRowBytes / 8 < 16 ? kRowBytes / 8 : 16;  // bytes
  static constexpr int kValueChunks = kRowBytes / 8 / kValueChunk;             // per lane and row
  static constexpr int kKeyWords = kKeyChunks * 4;
  static constexpr int kValueWords = kValueChunks * kValueChunk / 4;

  // The coordinate of value v of those that quarter c = l%4 reads of a key.
  static __device__ __forceinline__ int key_coordinate(int c, int v) {
    const int byte = v / kPerByte;
    return ((byte / 16 * 4 + c) * 16 + byte % 16) * kPerByte + v % kPerByte;
  }
  // The coordinate of value v of those that column g = l/4 reads of a value.
  static __device__ __forceinline__ int value_coordinate(int g, int v) {
    const int byte = v / kPerByte;
    return ((byte / kValueChunk * 8 + g) * kValueChunk + byte % kValueChunk) * kPerByte + v % kPerByte;
  }
};

// Copies four bytes asynchronously.
__device__ __forceinline__ void copy_4(void* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

inline constexpr int kLevelTableBytes = 256 * kWarp * 4;

// Entry [byte][lane], with kEntryBytes between bytes: the byte's two levels (4 bits), or its level twice (8
// bits).
template <int kBits, int kEntryBytes = kWarp * 4>
__device__ __forceinline__ void fill_level_table(const cache::Levels& levels, char* table) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const float own = levels.values[lane % 16];
  for (int byte = threadIdx.x / kWarp; byte < 256; byte += blockDim.x / kWarp) {
    const __half2 pair = kBits == 4 ? __floats2half2_rn(__shfl_sync(0xffffffffu, own, byte % 16),
                                                        __shfl_sync(0xffffffffu, own, byte / 16))
                                    : __float2half2_rn(levels.values[byte]);
    *reinterpret_cast<__half2*>(table + byte * kEntryBytes + lane * 4) = pair;
  }
}

// The entry of byte `i` of a word; `own` is the table's address + 4 * lane.
__device__ __forceinline__ std::uint32_t look_up(const char* own, std::uint32_t word, int i) {
  const std::uint32_t offset = i == 0 ? word << 7 : word >> (8 * i - 7);
  return *reinterpret_cast<const std::uint32_t*>(own + (offset & 0x7f80));
}
// Bytes 0-1 (or 2-3) of both words: the lower (or upper) halves of two pairs.
__device__ __forceinline__ std::uint32_t lower_halves(std::uint32_t a, std::uint32_t b) {
  return __byte_perm(a, b, 0x5410);
}
__device__ __forceinline__ std::uint32_t upper_halves(std::uint32_t a, std::uint32_t b) {
  return __byte_perm(a, b, 0x7632);
}

// The levels of eight neighbouring 4-bit or 8-bit codes.
__device__ __forceinline__ uint4 levels_of(const char* own, std::uint32_t codes) {
  return {look_up(own, codes, 0), look_up(own, codes, 1), look_up(own, codes, 2), look_up(own, codes, 3)};
}
__device__ __forceinline__ uint4 levels_of(const char* own, const uint2& codes) {
  return {lower_halves(look_up(own, codes.x, 0), look_up(own, codes.x, 1)),
          lower_halves(look_up(own, codes.x, 2), look_up(own, codes.x, 3)),
          lower_halves(look_up(own, codes.y, 0), look_up(own, codes.y, 1)),
          lower_halves(look_up(own, codes.y, 2), look_up(own, codes.y, 3))};
}

__device__ __forceinline__ std::uint32_t half_pair(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// multiply_add of mma.cuh for F16 operands.
__device__ __forceinline__ void multiply_add_f16(Sums& sums, const uint4& left, std::uint32_t upper,
                                                 std::uint32_t lower) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums.at[0]), "+f"(sums.at[1]), "+f"(sums.at[2]), "+f"(sums.at[3])
      : "r"(left.x), "r"(left.y), "r"(left.z), "r"(left.w), "r"(upper), "r"(lower));
}

// Rotates a query, held by a warp as in rotation.cuh (unless it is already rotated), and divides it by a
// power of two, which is returned, to keep it in the range of F16.
template <int kCount>
__device__ __forceinline__ float rotate_query(float (&q)[kCount], const unsigned char* signs, bool rotated) {
  const int lane = to_int(threadIdx.x) % kWarp;
  if (!rotated) {
    const float root = rsqrtf(static_cast<float>(kCount * kWarp));
#pragma unroll
    for (int r = 0; r < kCount; ++r)
      q[r] *= root * static_cast<float>(cache::sign_of(signs, lane + r * kWarp));
    cache::transform(q);
  }
  float largest = 0;
#pragma unroll
  for (int r = 0; r < kCount; ++r) largest = fmaxf(largest, fabsf(q[r]));
  largest = warp_max(largest);
  const float factor = largest > 0 ? exp2f(floorf(log2f(largest))) : 1.0f;
#pragma unroll
  for (int r = 0; r < kCount; ++r) q[r] /= factor;
  return factor;
}

// log2 of a norm's magnitude. A norm of 0 counts as 2^-100, far too small to affect sums, so maxima stay
// finite.
__device__ __forceinline__ float norm_exponent(float norm) {
  constexpr float kLowest = -100;
  return fabsf(norm) < 7.9e-31f ? kLowest : __log2f(fabsf(norm));
}

}  // namespace sluice::backend::cuda::attention::packed
