// Scales and biases of four rows of a weight, interleaved. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_INTEGER_QUAD_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_QUAD_GROUPS_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_QUAD_GROUPS_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_QUAD_GROUPS_INL_H_
#endif

#include "backend/cpu/linear/integer/codes-inl.h"
#include "backend/cpu/linear/weight_streams.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr int kQuad = kStreams;      // rows per tile, and groups that are scaled at once
constexpr float kE2m1Bias = -12.0f;  // of kE2m1Bytes, relative to their scales

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// Loads sixteen bytes of each of four rows.
HWY_INLINE __m512i load_four(const std::byte* const (&rows)[kQuad], std::int64_t at) {
  __m512i all = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[0] + at)));
  all = _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[1] + at)), 1);
  all = _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[2] + at)), 2);
  return _mm512_inserti32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[3] + at)), 3);
}

// Eight groups of BF16 numbers at a time.
HWY_INLINE void read_bf16_quad(const std::byte* const (&rows)[kQuad], std::int64_t groups,
                               float* HWY_RESTRICT to) {
  constexpr __mmask32 kUpper = 0xaaaaaaaa;  // a BF16 number is the upper half of a float
  alignas(64) static constexpr std::uint16_t kFrom[32] = {0, 0,  0,  8, 0,  16, 0, 24, 0,  1, 0,
                                                          9, 0,  17, 0, 25, 0,  2, 0,  10, 0, 18,
                                                          0, 26, 0,  3, 0,  11, 0, 19, 0,  27};
  const __m512i first = _mm512_load_si512(kFrom);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(4));
  for (std::int64_t g = 0; g < groups; g += 8, to += 32) {
    const __m512i all = load_four(rows, 2 * g);
    _mm512_storeu_si512(to, _mm512_maskz_permutexvar_epi16(kUpper, first, all));
    _mm512_storeu_si512(to + 16, _mm512_maskz_permutexvar_epi16(kUpper, second, all));
  }
}
#elif HWY_TARGET == HWY_AVX2
// Eight groups of BF16 numbers at a time; a zero below each number makes it a float.
HWY_INLINE void read_bf16_quad(const std::byte* const (&rows)[kQuad], std::int64_t groups,
                               float* HWY_RESTRICT to) {
  const __m256i zero = _mm256_setzero_si256();
  // Pairs of groups 0 to 3 of rows 0 and 1, then of rows 2 and 3: groups 0 and 2 first, then 1 and 3.
  const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
  for (std::int64_t g = 0; g < groups; g += 8, to += 32) {
    const auto two = [&](int r) HWY_ATTR {
      return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(rows[r + 2] + 2 * g),
                                 reinterpret_cast<const __m128i*>(rows[r] + 2 * g));
    };
    const auto store = [&](__m256i pairs, float* at) HWY_ATTR {
      const __m256i numbers = _mm256_permutevar8x32_epi32(pairs, order);
      _mm256_storeu_ps(at, _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, numbers)));
      _mm256_storeu_ps(at + 8, _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, numbers)));
    };
    const __m256i even = two(0);
    const __m256i odd = two(1);
    store(_mm256_unpacklo_epi16(even, odd), to);
    store(_mm256_unpackhi_epi16(even, odd), to + 16);
  }
}
#else
// Eight groups of BF16 numbers at a time; a zero below each number makes it a float.
HWY_INLINE void read_bf16_quad(const std::byte* const (&rows)[kQuad], std::int64_t groups,
                               float* HWY_RESTRICT to) {
  const hn::Full128<std::uint16_t> d;
  const hn::Full128<std::uint32_t> d32;
  const auto zero = hn::Zero(d);
  const auto store = [&](auto pairs, auto others, float* at) HWY_ATTR {
    const auto first = hn::BitCast(d, hn::InterleaveLower(d32, pairs, others));
    const auto second = hn::BitCast(d, hn::InterleaveUpper(d32, pairs, others));
    auto* numbers = reinterpret_cast<std::uint16_t*>(at);
    hn::StoreU(hn::InterleaveLower(d, zero, first), d, numbers);
    hn::StoreU(hn::InterleaveUpper(d, zero, first), d, numbers + 8);
    hn::StoreU(hn::InterleaveLower(d, zero, second), d, numbers + 16);
    hn::StoreU(hn::InterleaveUpper(d, zero, second), d, numbers + 24);
  };
  for (std::int64_t g = 0; g < groups; g += 8, to += 32) {
    const auto row = [&](int r) HWY_ATTR {
      return hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(rows[r] + 2 * g));
    };
    const auto a = row(0), b = row(1), c = row(2), e = row(3);
    store(hn::BitCast(d32, hn::InterleaveLower(d, a, b)), hn::BitCast(d32, hn::InterleaveLower(d, c, e)), to);
    store(hn::BitCast(d32, hn::InterleaveUpper(d, a, b)), hn::BitCast(d32, hn::InterleaveUpper(d, c, e)),
          to + 16);
  }
}
#endif

// Scales or biases of four rows, [group][row], padded with zeros to whole quads.
HWY_INLINE void read_quad(const std::byte* const (&rows)[kQuad], ScaleType type, std::int64_t groups,
                          float* HWY_RESTRICT line, float* HWY_RESTRICT to) {
  if (type == ScaleType::bf16 && groups % 8 == 0) return read_bf16_quad(rows, groups, to);
  const FloatTag d;
  const std::int64_t step = round_up(groups, kLanes);
  for (int r = 0; r < kQuad; ++r) read_scales(rows[r], type, groups, line + r * step);
  for (std::int64_t g = 0; g < groups; g += kLanes)
    hn::StoreInterleaved4(hn::LoadU(d, line + g), hn::LoadU(d, line + step + g),
                          hn::LoadU(d, line + 2 * step + g), hn::LoadU(d, line + 3 * step + g), d,
                          to + 4 * g);
}

// Half of the one-byte scales of four rows, eight groups at a time, which are interleaved before they are
// converted to floats. Returns false if one is NaN, negative or E8M0's lowest, which this code does not
// handle.
HWY_INLINE bool read_half_byte_quad(const std::byte* const (&rows)[kQuad], ScaleType type,
                                    std::int64_t groups, float* HWY_RESTRICT to) {
  const bool power = type == ScaleType::e8m0;
  const int mantissa = power ? 23 : 20;
  const auto factor = hn::Set(FloatTag(), power ? 0.5f : 0x1p119f);
  const hn::Full128<std::uint8_t> d;
  const hn::Full128<std::uint16_t> d16;
  const auto first = hn::Set(d, std::uint8_t{power});
  const auto last = hn::Set(d, static_cast<std::uint8_t>(power ? 253 : 126));
  auto largest = hn::Zero(d);
  HWY_ALIGN std::uint8_t bytes[32];
  for (std::int64_t g = 0; g < groups; g += 8) {
    const auto row = [&](int r) HWY_ATTR {
      const auto* at = reinterpret_cast<const std::uint8_t*>(rows[r] + g);
      return hn::ZeroExtendVector(d, hn::LoadU(hn::Half<decltype(d)>(), at));
    };
    const auto ab = hn::InterleaveLower(d, row(0), row(1));
    const auto ce = hn::InterleaveLower(d, row(2), row(3));
    largest = hn::Max(largest, hn::Max(hn::Sub(ab, first), hn::Sub(ce, first)));
    const auto pairs = hn::BitCast(d16, ab);
    const auto others = hn::BitCast(d16, ce);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(d16, pairs, others)), d, bytes);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(d16, pairs, others)), d, bytes + 16);
    for (std::int64_t i = 0; i < 32; i += kLanes, to += kLanes) {
      const auto code = hn::PromoteTo(WordTag(), hn::LoadU(hn::Rebind<std::uint8_t, FloatTag>(), bytes + i));
      const auto bits = hn::BitCast(FloatTag(), hn::ShiftLeftSame(code, mantissa));
      hn::StoreU(hn::Mul(bits, factor), FloatTag(), to);
    }
  }
  return hn::AllTrue(d, hn::Eq(hn::Min(largest, last), largest));
}

HWY_INLINE void halve(float* HWY_RESTRICT scales, std::int64_t count) {
  const FloatTag d;
  for (std::int64_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, scales + i), hn::Set(d, 0.5f)), d, scales + i);
}

// [group][row]. The biases of kE2m1Bytes are kE2m1Bias times their scales, half the stored ones, and are not
// written.
HWY_INLINE void read_quad_groups(const MatrixFormat& format, const Matrix& matrix,
                                 const std::int64_t (&rows)[kQuad], float* line, float* scales,
                                 float* biases) {
  const std::byte* scale_rows[kQuad];
  const std::byte* bias_rows[kQuad];
  for (int r = 0; r < kQuad; ++r) {
    scale_rows[r] = matrix.scales + rows[r] * format.scale_row_bytes;
    bias_rows[r] = matrix.biases + rows[r] * format.bias_row_bytes;
  }
  if (format.storage == Storage::fp4) {
    if (format.groups() % 8 == 0 &&
        read_half_byte_quad(scale_rows, format.scale_type, format.groups(), scales))
      return;
    read_quad(scale_rows, format.scale_type, format.groups(), line, scales);
    halve(scales, kQuad * padded_groups(format));
    return;
  }
  read_quad(scale_rows, format.scale_type, format.groups(), line, scales);
  read_quad(bias_rows, format.bias_type, format.groups(), line, biases);
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
