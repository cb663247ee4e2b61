// Encodes four BF16 vectors of 128, 256 or 512 elements to 4- or 8-bit codes, by one warp in F32.
//
// Coordinate k N + n of a vector (k < 16, N = D/16) is row k and column n of a matrix X, whose rotation is
// H_16 X H_N. Tensor cores multiply by H_16 from the left; its entries are 1 and -1, so products are exact.
// Lane l provides rows l%4, + 4, + 8, + 12 of half of the columns of vector l/8, and receives rows l/4 and
// l/4 + 8 of all columns of vector l%4, where H_N is additions within the lane. The codes of those columns
// are contiguous.
//
// The sum of a coordinate is within kDoubt of the exact one, in units of |x|/sqrt(D). The error consists of
// 16 * 2^-23 times the largest of sixteen terms on the tensor cores, which summed over columns is at most
// sqrt(N) |x|; of 2^-24 |x| times sqrt(D) for each further addition; and of the roundings of scale and bound.
// A coordinate that is this close to a bound is in doubt and is summed again in double. Vectors whose squares
// leave the range of F32, zero vectors included, are marked `strange` and left to the caller.
//
// Which side of the bound, and whether in doubt, follows from the leading bits of one number, the distance
// from the bound divided by 2^31 kDoubt: its sign, and three bits of its exponent, which are 011 from 2^-31
// on.
#pragma once

#include "backend/cuda/cache/encode_vector.cuh"
#include "backend/cuda/device/mma.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

// Divides the range of values into cells, each with at most one bound. No value is larger than sqrt(D). With
// 8 bits cells are smaller, and the outermost ones include all values beyond.
template <int kBits, int kWidth>
struct Cells {
  static_assert(kBits == 4 || kBits == 8);
  static constexpr double kDoubt = kWidth == 512 ? 3e-5 : 2e-5;
  static constexpr double kUnit = 0x1p-31 / kDoubt;
  static constexpr float kAcross = kBits == 4 ? 4 : 102.4f;  // cells per unit
  static constexpr int kMiddle = kBits == 4 ? 96 : 512;
  static constexpr int kCount = 2 * kMiddle + 1;
};

template <int kWidth, int kWarps>
struct GroupShared {
  alignas(1024) float squares[256];  // of the levels of the codes in a byte
  double bounds[256];
  float borders[1025];              // a cell's bound in kUnit; with 4 bits the last bits hold the code
  unsigned char codes[1028];        // the code below that bound
  std::uint32_t signs[kWidth / 2];  // for two coordinates each, as the sign bits of a BF16 pair
  unsigned char scratch[kWarps][kWidth];

  template <int kBits>
  __device__ __forceinline__ void fill(const Encoder& encoder, const unsigned char* sign_bits) {
    using Line = Cells<kBits, kWidth>;
    const int thread = threadIdx.x;
    const int threads = blockDim.x;
    share_bounds(encoder, bounds);
    for (int i = thread; i < kWidth / 2; i += threads)
      signs[i] = (sign_of(sign_bits, 2 * i) < 0 ? 0x8000u : 0u) |
                 (sign_of(sign_bits, 2 * i + 1) < 0 ? 0x80000000u : 0u);
    for (int byte = thread; byte < 256; byte += threads) {
      const float low = encoder.levels.values[byte % (1 << kBits)];
      const float high = kBits == 4 ? encoder.levels.values[byte / 16] : 0.0f;
      squares[byte] = low * low + high * high;
    }
    __syncthreads();
    // The bound nearest to the middle of a cell is the one in it, if there is one.
    for (int cell = thread; cell < Line::kCount; cell += threads) {
      const double middle = (cell - Line::kMiddle) / static_cast<double>(Line::kAcross);
      const int above = nearest_code(bounds, kBits, middle);
      const bool lower = above > 0 && middle - bounds[above - 1] < bounds[above] - middle;
      const int code = above - (lower ? 1 : 0);
      const auto border = static_cast<float>(bounds[code] * Line::kUnit);
      const unsigned rounded = (__float_as_uint(border) + 8) & ~15u;
      borders[cell] = kBits == 4 ? __uint_as_float(rounded | static_cast<unsigned>(code)) : border;
      codes[cell] = static_cast<unsigned char>(code);
    }
    __syncthreads();
  }
};

// A lane's part of H_16 as a left operand, with columns in the order of the rows that lanes provide.
__device__ __forceinline__ Fragment hadamard_operand() {
  const int lane = to_int(threadIdx.x) % kWarp;
  const auto entry = [&](int row, int column) { return (__popc(row & column) & 1) != 0 ? 0xbf80u : 0x3f80u; };
  const auto two = [&](int row, int column) { return entry(row, column) | entry(row, column + 4) << 16; };
  const int row = lane / 4;
  const int column = lane % 4;
  return {two(row, column), two(row + 8, column), two(row, column + 8), two(row + 8, column + 8)};
}

// A lane's result for its vector: the codes of two runs of N coordinates.
template <int kWidth, int kBits>
struct GroupCodes {
  static constexpr int kColumns = kWidth / 16;
  static constexpr int kRunWords = kColumns * kBits / 32;
  static constexpr int kPerWord = 32 / kBits;
  alignas(16) std::uint32_t words[2][kRunWords];
  std::uint32_t doubts[2];  // one bit per coordinate
  float squares;            // of the rotated vector: D |x|^2
  float level_squares;      // of the lane's own codes
  bool strange;

  // `given`: the lane's rows of half of the columns, signs applied.
  template <class Shared>
  __device__ __forceinline__ GroupCodes(const Shared& shared, const Fragment& hadamard,
                                        const std::uint32_t (&given)[4][kColumns / 4], bool matched) {
    float sums[2][kColumns];
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
      const unsigned halves = i % 2 == 0 ? 0x5410 : 0x7632;
      Sums product = {};
      multiply_add(product, hadamard, __byte_perm(given[0][i / 2], given[1][i / 2], halves),
                   __byte_perm(given[2][i / 2], given[3][i / 2], halves));
      sums[0][i] = product.at[0];
      sums[0][kColumns / 2 + i] = product.at[1];
      sums[1][i] = product.at[2];
      sums[1][kColumns / 2 + i] = product.at[3];
    }
    squares = 0;
#pragma unroll
    for (int run = 0; run < 2; ++run) {
#pragma unroll
      for (int half = 1; half < kColumns; half *= 2)
#pragma unroll
        for (int n = 0; n < kColumns; ++n)
          if ((n & half) == 0) {
            const float a = sums[run][n];
            const float b = sums[run][n + half];
            sums[run][n] = a + b;
            sums[run][n + half] = a - b;
          }
#pragma unroll
      for (int n = 0; n < kColumns; ++n) squares += sums[run][n] * sums[run][n];
    }
    squares = sum_of_vector(squares);
    strange = !(squares > 1e-25f && squares < 1e35f);
    const float scale = strange ? 0.0f : rsqrtf(squares) * sqrtf(static_cast<float>(kWidth));
    // A branch instead of a selection per number: it is hardly ever taken.
    if (__any_sync(0xffffffffu, strange)) {
#pragma unroll
      for (int i = 0; i < 2 * kColumns; ++i)
        if (strange) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(sums[i / kColumns][i % kColumns]));
    }
    std::uint32_t open[2][kRunWords];
    std::uint32_t any = 0;
#pragma unroll
    for (int run = 0; run < 2; ++run)
#pragma unroll
      for (int w = 0; w < kRunWords; ++w) {
        words[run][w] = quantize(shared, sums[run] + w * kPerWord, scale, open[run][w]);
        any |= open[run][w];
      }
    doubts[0] = doubts[1] = 0;
    if (any != 0) {
#pragma unroll
      for (int i = 0; i < 2 * kColumns; ++i)
        if ((open[i / kColumns][i % kColumns / kPerWord] >> i % kPerWord * kBits & 14) != 0)
          doubts[i / kColumns] |= 1u << i % kColumns;
    }
    level_squares = 0;
    if (matched) {
      const std::uint32_t table = shared_address(shared.squares);
#pragma unroll
      for (int i = 0; i < 8 * kRunWords; ++i) {
        const std::uint32_t word = words[i / 4 / kRunWords][i / 4 % kRunWords];
        level_squares += shared_float(table | ((i % 4 == 0 ? word << 2 : word >> (8 * (i % 4) - 2)) & 0x3fc));
      }
    }
  }

  // Replaces the code of coordinate n of a run, which is then no longer in doubt.
  template <class Shared>
  __device__ __forceinline__ void settle(const Shared& shared, int run, int n, unsigned code) {
    constexpr unsigned kMask = (1u << kBits) - 1;
    const int shift = n % kPerWord * kBits;
    doubts[0] &= ~(run == 0 ? 1u << n : 0u);
    doubts[1] &= ~(run == 1 ? 1u << n : 0u);
    const int target = run * kRunWords + n / kPerWord;
    unsigned old = 0;
#pragma unroll
    for (int i = 0; i < 2 * kRunWords; ++i)
      old |= i == target ? words[i / kRunWords][i % kRunWords] >> shift & kMask : 0u;
#pragma unroll
    for (int i = 0; i < 2 * kRunWords; ++i)
      words[i / kRunWords][i % kRunWords] ^= i == target ? (old ^ code) << shift : 0u;
    // With 4 bits, an entry is the sum of two squares; the second one is that of code 0 in both and cancels
    // out.
    level_squares += shared.squares[code] - shared.squares[old];
  }
  __device__ __forceinline__ float norm(bool matched) const {
    return sqrtf(squares / (matched ? sum_of_vector(level_squares) : static_cast<float>(kWidth)));
  }

 private:
  static __device__ __forceinline__ float sum_of_vector(float x) {
#pragma unroll
    for (int step = 4; step < kWarp; step *= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
  }
  static __device__ __forceinline__ float shared_float(std::uint32_t address) {
    float value;
    asm("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
    return value;
  }
  // The codes of neighbouring coordinates, the first one in the lowest bits. `open` gets nonzero bits for
  // those in doubt.
  template <class Shared>
  static __device__ __forceinline__ std::uint32_t quantize(const Shared& shared, const float* sums,
                                                           float scale, std::uint32_t& open) {
    using Line = Cells<kBits, kWidth>;
    constexpr float kShift = 12582912.0f;  // adding it moves an integer to the lowest bits
    constexpr std::uint32_t kOnes = kBits == 4 ? 0x11111111 : 0x01010101;
    std::uint32_t borders;  // opaque to the compiler, which would split the sum
    asm("sub.u32 %0, %1, %2;"
        : "=r"(borders)
        : "r"(shared_address(shared.borders)), "r"(__float_as_uint(kShift) * 4));
    const float small = scale * static_cast<float>(Line::kUnit);
    std::uint32_t below = 0;
    std::uint32_t heads = 0;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) {
      const float place =
          kBits == 4 ? sums[i] * (scale * Line::kAcross)
                     : fminf(fmaxf(sums[i] * (scale * Line::kAcross), -static_cast<float>(Line::kMiddle)),
                             static_cast<float>(Line::kMiddle));
      const std::uint32_t cell = __float_as_uint(place + (kShift + Line::kMiddle));
      const float border = shared_float(cell * 4 + borders);
      const float beyond = fmaf(sums[i], small, -border);
      below = __funnelshift_r(
          below, kBits == 4 ? __float_as_uint(border) : shared.codes[cell - __float_as_uint(kShift)], kBits);
      heads = __funnelshift_l(__float_as_uint(beyond), heads, kBits);
    }
    heads = __brev(heads);  // the first coordinate lowest; per coordinate sign, then exponent, from bit 0
    open = (heads ^ 12 * kOnes) & 14 * kOnes;
    return below + (~heads & kOnes);
  }
};

template <int kBytes>
__device__ __forceinline__ void copy_words(std::uint32_t* to, const void* from) {
  using Chunk = std::conditional_t<kBytes >= 16, uint4, std::conditional_t<kBytes == 8, uint2, unsigned>>;
#pragma unroll
  for (int i = 0; i < kBytes / to_int(sizeof(Chunk)); ++i)
    reinterpret_cast<Chunk*>(to)[i] = static_cast<const Chunk*>(from)[i];
}

// Coordinate i of the rotated vector, by a warp in double, with exactly the sum of encode_vector. `squares`
// gets |x|^2 with a relative error below 1e-6.
template <int kWidth>
__device__ __forceinline__ double exact_sum(const std::uint32_t* signs, const Bf16* x, int i,
                                            float& squares) {
  constexpr int kCount = kWidth / kWarp;
  const int lane = to_int(threadIdx.x) % kWarp;
  alignas(16) std::uint32_t words[kCount / 2];
  copy_words<2 * kCount>(words, x + lane * kCount);
  double parts[kCount];
  squares = 0;
#pragma unroll
  for (int w = 0; w < kCount / 2; ++w) {
    const float2 pair = unpack_pair(words[w] ^ signs[lane * (kCount / 2) + w]);
    squares = fmaf(pair.x, pair.x, fmaf(pair.y, pair.y, squares));
    parts[2 * w] = static_cast<double>(pair.x);
    parts[2 * w + 1] = static_cast<double>(pair.y);
  }
#pragma unroll
  for (int half = 1; half < kCount; half *= 2)
#pragma unroll
    for (int r = 0; r < kCount; r += 2 * half)
      parts[r] = (i & half) != 0 ? parts[r] - parts[r + half] : parts[r] + parts[r + half];
  double sum = parts[0];
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, sum, step);
    const double first = (lane & step) != 0 ? other : sum;
    const double second = (lane & step) != 0 ? sum : other;
    sum = (i & step * kCount) != 0 ? first - second : first + second;
  }
  squares = warp_sum(squares);
  return sum;
}

template <int kWidth>
__device__ __forceinline__ double exact_length(const Bf16* x) {
  double squares = 0;
  for (int i = to_int(threadIdx.x) % kWarp; i < kWidth; i += kWarp) {
    const double value = static_cast<double>(to_float(x[i]));
    squares += value * value;
  }
  return sqrt(warp_sum(squares));
}

// The code of coordinate i of a vector, by a warp. The length in F32 is sufficient unless the value is close
// to a bound with it, too.
template <int kWidth, int kBits, class Shared>
__device__ __forceinline__ unsigned exact_code(const Shared& shared, const Bf16* x, int i) {
  constexpr double kClose = 5e-6;
  float squares;
  const double sum = exact_sum<kWidth>(shared.signs, x, i, squares);
  const double value = sum * static_cast<double>(rsqrtf(squares));
  const int code = nearest_code(shared.bounds, kBits, value);
  const bool close =
      (code > 0 && value - shared.bounds[code - 1] < kClose) || shared.bounds[code] - value < kClose;
  if (!close) return static_cast<unsigned>(code);
  const double root = sqrt(static_cast<double>(kWidth));
  return static_cast<unsigned>(
      nearest_code(shared.bounds, kBits, sum / root * root / exact_length<kWidth>(x)));
}

}  // namespace sluice::backend::cuda::cache
