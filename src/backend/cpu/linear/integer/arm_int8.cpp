#include "backend/cpu/linear/integer/arm_int8.h"

#if defined(__aarch64__) && defined(__linux__)

#include <arm_neon.h>
#include <sys/auxv.h>

#include "backend/cpu/linear/integer/product.h"

namespace sluice::backend::cpu::linear::integer::arm {

namespace {

constexpr unsigned long kHasDots = 1UL << 20;      // HWCAP_ASIMDDP
constexpr unsigned long kHasMatrices = 1UL << 13;  // HWCAP2_I8MM
constexpr std::int64_t kVector = 16;               // bytes

// Sixteen bytes of codes contain 32 codes of 4 bits, the even ones and the odd ones, or sixteen of 8 bits.
// Their integers' high digits are followed by the low digits.
template <int kBits>
constexpr std::int64_t kCodes = kVector * 8 / kBits;

// The digits of up to sixteen integers from `from` on, `step` apart.
void split(const std::int16_t* from, std::int64_t step, std::int8_t* high, std::int8_t* low) {
  for (std::int64_t i = 0; i < kVector; ++i) {
    const int q = from[i * step];
    const int top = (q + (1 << (kDigitBits - 1))) >> kDigitBits;
    high[i] = static_cast<std::int8_t>(top);
    low[i] = static_cast<std::int8_t>(q - top * (1 << kDigitBits));
  }
}

inline int8x16_t digits_at(const std::byte* from) {
  return vld1q_s8(reinterpret_cast<const std::int8_t*>(from));
}
inline uint8x16_t codes_at(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
}

// The sums for both digits.
struct DigitSums {
  int32x4_t high;
  int32x4_t low;
};

// Adds group g's exact sums of four rows to the sum of every fourth group.
inline float32x4_t add_group(float32x4_t sum, const DigitSums& digits, const Product& product, const Row& x,
                             std::int64_t g) {
  const int32x4_t dot = vaddq_s32(vshlq_n_s32(digits.high, kDigitBits), digits.low);
  const float32x4_t scaled = vmulq_f32(vcvtq_f32_s32(dot), vld1q_f32(x.scales + g * kRows));
  sum = vfmaq_f32(sum, vld1q_f32(product.scales + g * kRows), scaled);
  return vfmaq_f32(sum, vld1q_f32(product.biases + g * kRows), vld1q_f32(x.sums + g * kRows));
}

inline int32x4_t sums_of(const int32x4_t (&rows)[kRows]) {
  return vpaddq_s32(vpaddq_s32(rows[0], rows[1]), vpaddq_s32(rows[2], rows[3]));
}

// One group of four rows of 4-bit codes times one token, with dot products.
struct Dots {
  static constexpr int kBits = 4;
  __attribute__((target("arch=armv8.2-a+crypto+dotprod"))) static void sum(
      const std::byte* const (&rows)[kRows], std::int64_t vectors, const std::byte* digits, int32x4_t& high,
      int32x4_t& low) {
    int32x4_t large[kRows] = {};
    int32x4_t small[kRows] = {};
    for (std::int64_t v = 0; v < vectors; ++v, digits += 4 * kVector)
      for (int r = 0; r < kRows; ++r) {
        const uint8x16_t codes = codes_at(rows[r] + v * kVector);
        const int8x16_t even = vreinterpretq_s8_u8(vandq_u8(codes, vdupq_n_u8(15)));
        const int8x16_t odd = vreinterpretq_s8_u8(vshrq_n_u8(codes, 4));
        large[r] = vdotq_s32(vdotq_s32(large[r], even, digits_at(digits)), odd, digits_at(digits + kVector));
        small[r] = vdotq_s32(vdotq_s32(small[r], even, digits_at(digits + 2 * kVector)), odd,
                             digits_at(digits + 3 * kVector));
      }
    high = sums_of(large);
    low = sums_of(small);
  }
};

// The same with products of two rows, eight codes of each, with both digits of eight numbers.
struct ByteMatrices {
  static constexpr int kBits = 4;
  __attribute__((target("arch=armv8.2-a+crypto+i8mm"))) static void sum(const std::byte* const (&rows)[kRows],
                                                                        std::int64_t vectors,
                                                                        const std::byte* digits,
                                                                        int32x4_t& high, int32x4_t& low) {
    int32x4_t two[kRows / 2] = {};  // [row][digit]
    for (std::int64_t v = 0; v < vectors; ++v, digits += 4 * kVector) {
      const int8x16_t even_high = digits_at(digits);
      const int8x16_t odd_high = digits_at(digits + kVector);
      const int8x16_t even_low = digits_at(digits + 2 * kVector);
      const int8x16_t odd_low = digits_at(digits + 3 * kVector);
      for (int r = 0; r < kRows / 2; ++r) {
        const uint64x2_t a = vreinterpretq_u64_u8(codes_at(rows[2 * r] + v * kVector));
        const uint64x2_t b = vreinterpretq_u64_u8(codes_at(rows[2 * r + 1] + v * kVector));
        const uint8x16_t first = vreinterpretq_u8_u64(vzip1q_u64(a, b));
        const uint8x16_t last = vreinterpretq_u8_u64(vzip2q_u64(a, b));
        two[r] = vusmmlaq_s32(two[r], vandq_u8(first, vdupq_n_u8(15)), first_halves(even_high, even_low));
        two[r] = vusmmlaq_s32(two[r], vandq_u8(last, vdupq_n_u8(15)), last_halves(even_high, even_low));
        two[r] = vusmmlaq_s32(two[r], vshrq_n_u8(first, 4), first_halves(odd_high, odd_low));
        two[r] = vusmmlaq_s32(two[r], vshrq_n_u8(last, 4), last_halves(odd_high, odd_low));
      }
    }
    high = vuzp1q_s32(two[0], two[1]);
    low = vuzp2q_s32(two[0], two[1]);
  }
  static int8x16_t first_halves(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
  }
  static int8x16_t last_halves(int8x16_t a, int8x16_t b) {
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
  }
};

// Codes of 8 bits, which are unsigned.
struct UnsignedDots {
  static constexpr int kBits = 8;
  __attribute__((target("arch=armv8.2-a+crypto+i8mm"))) static void sum(const std::byte* const (&rows)[kRows],
                                                                        std::int64_t vectors,
                                                                        const std::byte* digits,
                                                                        int32x4_t& high, int32x4_t& low) {
    int32x4_t large[kRows] = {};
    int32x4_t small[kRows] = {};
    for (std::int64_t v = 0; v < vectors; ++v, digits += 2 * kVector)
      for (int r = 0; r < kRows; ++r) {
        const uint8x16_t codes = codes_at(rows[r] + v * kVector);
        large[r] = vusdotq_s32(large[r], codes, digits_at(digits));
        small[r] = vusdotq_s32(small[r], codes, digits_at(digits + kVector));
      }
    high = sums_of(large);
    low = sums_of(small);
  }
};

template <class Sums>
void multiply_by(const Product& product, const Row* x, std::int64_t tokens, float* out,
                 std::int64_t out_step) {
  const MatrixFormat& format = product.format;
  const std::int64_t group_bytes = format.group_size * Sums::kBits / 8;
  float32x4_t chains[kTokens][4] = {};
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    const std::byte* at[kRows];
    for (int r = 0; r < kRows; ++r) {
      at[r] = product.rows[r] + g * group_bytes;
      __builtin_prefetch(at[r] + format.row_bytes * kRows);
    }
    // The codes stay in the first-level cache for all tokens.
    for (std::int64_t t = 0; t < tokens; ++t) {
      DigitSums digits;
      Sums::sum(at, group_bytes / kVector, x[t].digits + 2 * g * format.group_size, digits.high, digits.low);
      float32x4_t& chain = chains[t][g % 4];
      chain = add_group(chain, digits, product, x[t], g);
    }
  }
  for (std::int64_t t = 0; t < tokens; ++t)
    vst1q_f32(out + t * out_step,
              vaddq_f32(vaddq_f32(chains[t][0], chains[t][1]), vaddq_f32(chains[t][2], chains[t][3])));
}

}  // namespace

Bytes available(Isa isa) {
  static const Bytes bytes = (getauxval(AT_HWCAP2) & kHasMatrices) != 0 ? Bytes::matrices
                             : (getauxval(AT_HWCAP) & kHasDots) != 0    ? Bytes::dots
                                                                        : Bytes::none;
  return std::min(bytes, isa == Isa::i8mm      ? Bytes::matrices
                         : isa == Isa::dotprod ? Bytes::dots
                                               : Bytes::none);
}

bool knows(Isa isa, const MatrixFormat& format) {
  if (format.storage == Storage::affine4) return available(isa) != Bytes::none;
  return format.storage == Storage::affine8 && available(isa) == Bytes::matrices;
}

void split_digits(const MatrixFormat& format, const std::int16_t* integers, std::byte* digits) {
  auto* to = reinterpret_cast<std::int8_t*>(digits);
  if (format.storage == Storage::affine8) {
    for (std::int64_t i = 0; i < format.columns; i += kCodes<8>, to += 2 * kVector)
      split(integers + i, 1, to, to + kVector);
    return;
  }
  for (std::int64_t i = 0; i < format.columns; i += kCodes<4>, to += 4 * kVector) {
    split(integers + i, 2, to, to + 2 * kVector);
    split(integers + i + 1, 2, to + kVector, to + 3 * kVector);
  }
}

void multiply(const Product& product, const Row* x, std::int64_t tokens, float* out, std::int64_t out_step) {
  const auto by = product.format.storage == Storage::affine8 ? multiply_by<UnsignedDots>
                  : product.bytes == Bytes::matrices         ? multiply_by<ByteMatrices>
                                                             : multiply_by<Dots>;
  by(product, x, tokens, out, out_step);
}

}  // namespace sluice::backend::cpu::linear::integer::arm

#else

namespace sluice::backend::cpu::linear::integer::arm {

Bytes available(Isa) {
  return Bytes::none;
}
bool knows(Isa, const MatrixFormat&) {
  return false;
}
void split_digits(const MatrixFormat&, const std::int16_t*, std::byte*) {}
void multiply(const Product&, const Row*, std::int64_t, float*, std::int64_t) {}

}  // namespace sluice::backend::cpu::linear::integer::arm

#endif
