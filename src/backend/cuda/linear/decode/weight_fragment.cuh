// Packed weights as operands of the tensor cores: pairs of BF16, exact, without their scales.
//
// A lane has kLaneValues consecutive values of a row and unpacks eight at a time. The order of the eight is
// the one that unpacks in the fewest instructions (kOrder); inputs are stored in the same order, so the sum
// is over the same products.
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/linear/decode/storage_shape.h"

namespace sluice::backend::cuda::linear::decode {

// Which values share a 32-bit word: neighbours, those two apart, or those four apart.
enum class PairOrder { neighbours, two_apart, four_apart };

template <Storage S>
struct Fragment {
  static constexpr StorageShape kShape{S};
  static constexpr int kBits = kShape.bits;
  static constexpr bool kDense = kShape.dense;
  static constexpr bool kAffine = kShape.affine;
  static constexpr int kLaneValues = kShape.lane_values;
  static constexpr int kWords = kShape.words;
  static constexpr int kEights = kLaneValues / 8;
  // Number of BF16 numbers that add up to a value.
  static constexpr int kTerms = S == Storage::f32 ? 3 : S == Storage::f16 ? 2 : 1;
  static constexpr PairOrder kOrder = kDense       ? PairOrder::neighbours
                                      : kBits <= 4 ? PairOrder::four_apart
                                                   : PairOrder::two_apart;
  static constexpr int kStepValues = kShape.step_values;
  // How often a step's sums are scaled: groups of nvfp4 have half of a lane's values.
  static constexpr int kFlushes = S == Storage::fp4 ? 2 : 1;
};

__device__ __forceinline__ unsigned bf16x2_fma(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// The upper halves of two floats: truncation to BF16.
__device__ __forceinline__ unsigned upper_halves(float low, float high) {
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}
__device__ __forceinline__ float truncated(float x) {
  return __uint_as_float(__float_as_uint(x) & 0xffff0000u);
}

// Converts codes in the low bits of each half to BF16.
template <Storage S>
__device__ __forceinline__ unsigned bf16_of_codes(unsigned codes) {
  constexpr unsigned kOne = 0x3f803f80;
  constexpr unsigned k128 = 0x43004300;
  constexpr unsigned kMinus128 = 0xc300c300;
  constexpr unsigned kMinus256 = 0xc380c380;
  if constexpr (Fragment<S>::kBits < 8) {
    return bf16x2_fma(codes | k128, kOne, kMinus128);  // 128 + code, since the mantissa's last bit is worth 1
  } else {
    // Seven bits fit into the mantissa of 128; the eighth bit, set in 128, makes it 256.
    const unsigned top = bf16x2_fma((codes & 0x00800080u) | k128, kOne, kMinus256);
    return bf16x2_fma((codes & 0x007f007fu) | k128, kOne, top);
  }
}

// Converts E4M3 in the low byte of each half. The bits are those of a BF16 number that is 2^120 times too
// small.
__device__ __forceinline__ unsigned bf16_of_e4m3(unsigned codes) {
  constexpr unsigned k2To120 = 0x7b807b80;
  constexpr unsigned kMinusZero = 0x80008000;
  unsigned value = bf16x2_fma((codes << 4 & 0x07f007f0u) | (codes << 8 & 0x80008000u), k2To120, kMinusZero);
  const unsigned nan = ((codes & 0x007f007fu) + 0x00010001u) & 0x00800080u;
  if (nan != 0) value |= (nan << 8) - nan;
  return value;
}

// Converts E2M1 number j of each half. The bits are those of a BF16 number that is 2^126 times too small.
template <int J>
__device__ __forceinline__ unsigned bf16_of_e2m1(unsigned codes) {
  constexpr unsigned k2To126 = 0x7e807e80;
  constexpr unsigned kMinusZero = 0x80008000;
  const unsigned sign = codes << (12 - 4 * J) & 0x80008000u;
  const unsigned magnitude = (J < 2 ? codes << (J < 2 ? 6 - 4 * J : 0) : codes >> (J < 2 ? 0 : 4 * J - 6));
  return bf16x2_fma(sign | (magnitude & 0x01c001c0u), k2To126, kMinusZero);
}

// 32 bits of a lane's words from bit `at` on.
template <int Words>
__device__ __forceinline__ unsigned window(const unsigned (&words)[Words], int at) {
  const int word = at / 32;
  if (at % 32 == 0) return words[word];
  return __funnelshift_r(words[word], word + 1 < Words ? words[word + 1] : 0u, at % 32);
}

// Values 8*i to 8*i+7 of a lane as four pairs per term.
template <Storage S>
__device__ __forceinline__ void unpack_eight(const unsigned (&words)[Fragment<S>::kWords], int i,
                                             unsigned (&pairs)[Fragment<S>::kTerms][4]) {
  constexpr int kBits = Fragment<S>::kBits;
  if constexpr (S == Storage::bf16) {
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[0][j] = words[4 * i + j];
  } else if constexpr (S == Storage::f16) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 v = __half22float2(*reinterpret_cast<const __half2*>(&words[4 * i + j]));
      pairs[0][j] = upper_halves(v.x, v.y);
      pairs[1][j] = upper_halves(v.x - truncated(v.x), v.y - truncated(v.y));
    }
  } else if constexpr (S == Storage::f32) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float low = __uint_as_float(words[8 * i + 2 * j]);
      float high = __uint_as_float(words[8 * i + 2 * j + 1]);
#pragma unroll
      for (int term = 0; term < 3; ++term) {
        pairs[term][j] = upper_halves(low, high);
        low -= truncated(low);
        high -= truncated(high);
      }
    }
  } else {
    // The codes of each half of the eight (four or two at a time) are spread to 16 bits each; then a shift
    // and a mask give a pair.
    constexpr int kHalf = kBits <= 4 ? 4 : 2;
    constexpr int kHalfBits = kHalf * kBits;
    constexpr unsigned kHalfMask = (1u << kHalfBits) - 1;
    constexpr unsigned kPairMask = ((1u << kBits) - 1) * 0x00010001u;
#pragma unroll
    for (int part = 0; part < 4 / kHalf; ++part) {
      const unsigned bits = window(words, 8 * kBits * i + 2 * kHalfBits * part);
      const unsigned spread =
          kHalfBits == 16 ? bits : (bits & kHalfMask) | (bits << (16 - kHalfBits) & kHalfMask << 16);
      unsigned(&out)[4] = pairs[0];
      if constexpr (S == Storage::fp4) {
        out[0] = bf16_of_e2m1<0>(spread);
        out[1] = bf16_of_e2m1<1>(spread);
        out[2] = bf16_of_e2m1<2>(spread);
        out[3] = bf16_of_e2m1<3>(spread);
      } else {
#pragma unroll
        for (int j = 0; j < kHalf; ++j) {
          const unsigned codes = spread >> (kBits * j) & kPairMask;
          out[kHalf * part + j] = S == Storage::fp8 ? bf16_of_e4m3(codes) : bf16_of_codes<S>(codes);
        }
      }
    }
  }
}

// Eight consecutive BF16 numbers, reordered as in the fragments.
template <PairOrder Order>
__device__ __forceinline__ uint4 in_pair_order(const uint4& v) {
  if constexpr (Order == PairOrder::four_apart)
    return make_uint4(__byte_perm(v.x, v.z, 0x5410), __byte_perm(v.x, v.z, 0x7632),
                      __byte_perm(v.y, v.w, 0x5410), __byte_perm(v.y, v.w, 0x7632));
  else if constexpr (Order == PairOrder::two_apart)
    return make_uint4(__byte_perm(v.x, v.y, 0x5410), __byte_perm(v.x, v.y, 0x7632),
                      __byte_perm(v.z, v.w, 0x5410), __byte_perm(v.z, v.w, 0x7632));
  else
    return v;
}

// c += a b: 16 rows of weights by 8 columns of inputs over 16 values.
__device__ __forceinline__ void multiply_tile(float (&c)[4], const uint4& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

}  // namespace sluice::backend::cuda::linear::decode
