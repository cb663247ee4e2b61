// Encodes one vector for a TurboQuant cache, by one warp: rotate, take the nearest level of each coordinate
// times sqrt(D)/|x|, pack. Rotation and comparison are in double, so codes equal the reference's.
#pragma once

#include "backend/cuda/cache/codebook.cuh"
#include "backend/cuda/cache/rotation.cuh"
#include "backend/cuda/device/element.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

struct Encoder {
  Bounds bounds;
  Levels levels;
  int bits;
  bool matched;

  Encoder(std::int64_t width, bool matched_norm)
      : bounds(width), levels(width), bits(to_int(width)), matched(matched_norm) {}
};

// Copies the bounds to shared memory, where lanes can read different ones at the same time.
__device__ __forceinline__ void share_bounds(const Encoder& encoder, double* bounds) {
  if (encoder.bits == 16) return;
  for (int c = threadIdx.x; c < 1 << encoder.bits; c += blockDim.x) bounds[c] = encoder.bounds.values[c];
}

// The number of bounds below the value: a value on a bound gets the lower code, NaN gets code 0.
__device__ __forceinline__ int nearest_code(const double* bounds, int bits, double value) {
  int code = 0;
  for (int step = 1 << (bits - 1); step > 0; step /= 2)
    if (value > bounds[code + step - 1]) code += step;
  return code;
}

// Shared memory for encoding.
struct EncodeMemory {
  const double* bounds;
  unsigned char* scratch;  // the warp's own, a byte per coordinate
};

// Where a vector is written.
struct EncodedVector {
  unsigned char* codes;
  float* norm;
};

// kNumbers: 16 bits, BF16 numbers instead of codes.
template <class T, int kCount, bool kNumbers = false>
__device__ void encode_vector(const Encoder& encoder, const EncodeMemory& memory, const T* x,
                              const unsigned char* signs, const EncodedVector& to) {
  constexpr int kWidth = kCount * kWarp;
  const int lane = to_int(threadIdx.x) % kWarp;
  const double root = sqrt(static_cast<double>(kWidth));
  double values[kCount];
  double squares = 0;
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    const double value = static_cast<double>(to_float(x[lane + r * kWarp]));
    squares += value * value;
    values[r] = value * sign_of(signs, lane + r * kWarp);
  }
  const double length = sqrt(warp_sum(squares));
  transform(values);
  double level_squares = 0;
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    const double value = length == 0 ? 0.0 : values[r] / root * root / length;
    double level;
    if constexpr (kNumbers) {
      const unsigned stored = ops::to_bfloat16(static_cast<float>(value)).bits;
      level = static_cast<double>(__uint_as_float(stored << 16));
      to.codes[2 * (lane + r * kWarp)] = static_cast<unsigned char>(stored);
      to.codes[2 * (lane + r * kWarp) + 1] = static_cast<unsigned char>(stored >> 8);
    } else {
      const int code = nearest_code(memory.bounds, encoder.bits, value);
      level = static_cast<double>(encoder.levels.values[code]);
      memory.scratch[lane + r * kWarp] = static_cast<unsigned char>(code);
    }
    level_squares += level * level;
  }
  level_squares = warp_sum(level_squares);
  __syncwarp();
  if constexpr (!kNumbers)
    for (int j = lane; j < kWidth * encoder.bits / 8; j += kWarp)
      to.codes[j] = pack_byte(memory.scratch, j, encoder.bits);
  const bool matched = encoder.matched && length != 0;
  if (lane == 0) *to.norm = static_cast<float>(matched ? length * root / sqrt(level_squares) : length);
  __syncwarp();  // before the next vector's codes
}

}  // namespace sluice::backend::cuda::cache
