// Slices: 32 consecutive values of one weight row, loaded from device memory and written as BF16 to shared
// memory. fetch() starts the loads, finish() dequantises and stores; other work in between hides the loads'
// latency. A quantised value is rounded once, from scale * code + bias in F32 or in one BF16 FMA of exact
// operands.
#pragma once

#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/linear/weight_value.cuh"

namespace sluice::backend::cuda::linear::prefill {

inline constexpr int kSlice = 32;

// The source of a slice; `values` is null past the end of the matrix and stands for zeros.
struct SliceSource {
  const std::byte* values;
  const std::byte* scales;
  const std::byte* biases;
};

// The position of a slice in its row.
struct SlicePlace {
  int k;
  int group;  // of scales
  int left;   // values up to the row's end; a multiple of 8, and of 32 if quantised
};

// Bytes per load, as wide as a slice's size allows: its offset in the row is a multiple of its size.
template <int kWords>
constexpr int kLoadBytes = kWords % 4 == 0   ? 16
                           : kWords % 2 == 0 ? 8
                                             : 4;

template <int kWords>
__device__ __forceinline__ void load_words(std::uint32_t (&words)[kWords], const std::byte* from) {
  if constexpr (kLoadBytes<kWords> == 16) {
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(from) + i);
      words[4 * i] = v.x, words[4 * i + 1] = v.y, words[4 * i + 2] = v.z, words[4 * i + 3] = v.w;
    }
  } else if constexpr (kLoadBytes<kWords> == 8) {
#pragma unroll
    for (int i = 0; i < kWords / 2; ++i) {
      const uint2 v = __ldg(reinterpret_cast<const uint2*>(from) + i);
      words[2 * i] = v.x, words[2 * i + 1] = v.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldg(reinterpret_cast<const std::uint32_t*>(from) + i);
  }
}

// `count` bits from bit `first` on, with other bits above them. All arguments but the words are constants
// after loop unrolling.
template <int kWords>
__device__ __forceinline__ std::uint32_t bits_at(const std::uint32_t (&words)[kWords], int first, int count) {
  const int word = first / 32;
  const int shift = first % 32;
  return shift + count > 32 ? __funnelshift_r(words[word], words[(word + 1) % kWords], shift)
                            : words[word] >> shift;
}

// Where chunk j (of 8 values) of the four of a slice is written.
struct SliceTarget {
  std::byte* row;  // the row's 64 values in shared memory
  int first;       // index in the row of the slice's first chunk: 0 or 4
  int swizzle;     // row % 8: chunk c is stored at c ^ swizzle

  __device__ __forceinline__ std::byte* operator[](int j) const { return row + ((first + j) ^ swizzle) * 16; }
};

template <int kBits>
struct AffineSlice {
  std::uint32_t words[kBits];
  std::uint32_t scale_bits;  // unconverted: a conversion in fetch() would wait for the load
  std::uint32_t bias_bits;

  __device__ __forceinline__ void fetch(const Matrices& w, const SliceSource& from, const SlicePlace& at,
                                        const SliceTarget&) {
    if (from.values == nullptr || at.left <= 0) return clear();
    load_words(words, from.values + at.k / kSlice * (4 * kBits));
    if (w.scale_type == ScaleType::f32) {
      scale_bits = __ldg(reinterpret_cast<const std::uint32_t*>(from.scales) + at.group);
      bias_bits = __ldg(reinterpret_cast<const std::uint32_t*>(from.biases) + at.group);
    } else {
      scale_bits = __ldg(reinterpret_cast<const std::uint16_t*>(from.scales) + at.group);
      bias_bits = __ldg(reinterpret_cast<const std::uint16_t*>(from.biases) + at.group);
    }
  }
  __device__ __forceinline__ void finish(const Matrices& w, const SliceTarget& to) const {
    if (kBits < 8 && w.scale_type == ScaleType::bf16) return finish_bf16(to);
    const float scale = number(w.scale_type, scale_bits);
    const float bias = number(w.scale_type, bias_bits);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t out[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        out[i] =
            pack_pair(fmaf(code(8 * j + 2 * i), scale, bias), fmaf(code(8 * j + 2 * i + 1), scale, bias));
      *reinterpret_cast<uint4*>(to[j]) = make_uint4(out[0], out[1], out[2], out[3]);
    }
  }

 private:
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t& word : words) word = 0;
    scale_bits = bias_bits = 0;
  }
  static __device__ __forceinline__ float number(ScaleType type, std::uint32_t bits) {
    if (type == ScaleType::f32) return __uint_as_float(bits);
    if (type == ScaleType::bf16) return __uint_as_float(bits << 16);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  }
  // 2^23 + code is exact, and cheaper than an integer conversion.
  __device__ __forceinline__ float code(int i) const {
    const std::uint32_t bits = bits_at(words, i * kBits, kBits) & ((1u << kBits) - 1);
    return __uint_as_float(0x4b000000u | bits) - 8388608.0f;
  }
  // Two codes per register, as BF16 numbers 128 + code.
  __device__ __forceinline__ __nv_bfloat162 pair(int i) const {
    constexpr std::uint32_t kMask = (1u << kBits) - 1;
    const std::uint32_t both = bits_at(words, i * kBits, 2 * kBits) & ((1u << 2 * kBits) - 1);
    const std::uint32_t apart = both | both << (16 - kBits);
    const std::uint32_t numbers = (apart & (kMask | kMask << 16)) | 0x43004300u;
    return *reinterpret_cast<const __nv_bfloat162*>(&numbers);
  }
  __device__ __forceinline__ void finish_bf16(const SliceTarget& to) const {
    const std::uint32_t twice[2] = {scale_bits | scale_bits << 16, bias_bits | bias_bits << 16};
    const auto& [scales, biases] = reinterpret_cast<const __nv_bfloat162(&)[2]>(twice);
    const __nv_bfloat162 offset = __float2bfloat162_rn(128.0f);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      __nv_bfloat162 out[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) out[i] = __hfma2(__hsub2(pair(8 * j + 2 * i), offset), scales, biases);
      *reinterpret_cast<uint4*>(to[j]) = *reinterpret_cast<const uint4*>(out);
    }
  }
};

// mxfp4 (one scale per slice), nvfp4 (two) and mxfp8.
template <int kBits>
struct MinifloatSlice {
  std::uint32_t words[kBits];
  std::uint8_t scale_bits[2];  // of each half, unconverted

  __device__ __forceinline__ void fetch(const Matrices& w, const SliceSource& from, const SlicePlace& at,
                                        const SliceTarget&) {
    if (from.values == nullptr || at.left <= 0) return clear();
    load_words(words, from.values + at.k / kSlice * (4 * kBits));
    const auto* scales = reinterpret_cast<const std::uint8_t*>(from.scales) + at.group;
    scale_bits[0] = __ldg(scales);
    scale_bits[1] = __ldg(scales + (w.group_size < kSlice ? 1 : 0));
  }
  __device__ __forceinline__ void finish(const Matrices& w, const SliceTarget& to) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint8_t bits = scale_bits[j / 2];
      const float scale = w.scale_type == ScaleType::e8m0 ? e8m0_to_float(bits) : e4m3_to_float(bits);
      std::uint32_t out[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        out[i] = pack_pair(code(8 * j + 2 * i) * scale, code(8 * j + 2 * i + 1) * scale);
      *reinterpret_cast<uint4*>(to[j]) = make_uint4(out[0], out[1], out[2], out[3]);
    }
  }

 private:
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (std::uint32_t& word : words) word = 0;
    scale_bits[0] = scale_bits[1] = 0;
  }
  __device__ __forceinline__ float code(int i) const {
    const std::uint32_t bits = bits_at(words, i * kBits, kBits);
    return kBits == 8 ? e4m3_to_float(bits & 0xffu) : e2m1_to_float(bits);
  }
};

// BF16 weights: copied asynchronously, without registers.
struct Bf16Slice {
  __device__ __forceinline__ void fetch(const Matrices&, const SliceSource& from, const SlicePlace& at,
                                        const SliceTarget& to) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      copy_16(to[j], from.values + 2 * (at.k + 8 * j), from.values != nullptr && 8 * j < at.left);
  }
  __device__ __forceinline__ void finish(const Matrices&, const SliceTarget&) const {}
};

// F16 or F32: rare, so finish() does all of the work.
template <class T>
struct ConvertedSlice {
  const T* values;
  int left;

  __device__ __forceinline__ void fetch(const Matrices&, const SliceSource& from, const SlicePlace& at,
                                        const SliceTarget&) {
    values = reinterpret_cast<const T*>(from.values) + at.k;
    left = from.values != nullptr ? at.left : 0;
  }
  __device__ __forceinline__ void finish(const Matrices&, const SliceTarget& to) const {
#pragma unroll 1
    for (int j = 0; j < 4; ++j) {
      std::uint32_t out[4] = {};
      if (8 * j < left)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          out[i] = pack_pair(to_float(values[8 * j + 2 * i]), to_float(values[8 * j + 2 * i + 1]));
      *reinterpret_cast<uint4*>(to[j]) = make_uint4(out[0], out[1], out[2], out[3]);
    }
  }
};

template <Storage kStorage>
struct SliceOf;
template <>
struct SliceOf<Storage::f32> : ConvertedSlice<float> {};
template <>
struct SliceOf<Storage::f16> : ConvertedSlice<__half> {};
template <>
struct SliceOf<Storage::bf16> : Bf16Slice {};
template <>
struct SliceOf<Storage::affine2> : AffineSlice<2> {};
template <>
struct SliceOf<Storage::affine3> : AffineSlice<3> {};
template <>
struct SliceOf<Storage::affine4> : AffineSlice<4> {};
template <>
struct SliceOf<Storage::affine5> : AffineSlice<5> {};
template <>
struct SliceOf<Storage::affine6> : AffineSlice<6> {};
template <>
struct SliceOf<Storage::affine8> : AffineSlice<8> {};
template <>
struct SliceOf<Storage::fp4> : MinifloatSlice<4> {};
template <>
struct SliceOf<Storage::fp8> : MinifloatSlice<8> {};

}  // namespace sluice::backend::cuda::linear::prefill
