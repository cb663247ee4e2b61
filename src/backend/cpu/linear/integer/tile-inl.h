// The integer product of four rows of a weight with a few rows of x, straight from the packed codes. Included
// once per instruction set.
//
// A vector holds 16-byte blocks of one weight row. The products of a block stay in the block, so that four
// rows can be added up side by side; blocks of a group are then folded together, and sixteen numbers, four
// groups by four rows, are scaled at once. Where the processor multiplies bytes, integers of x are two
// digits; elsewhere they and the codes are words of sixteen bits.
#if defined(SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#endif

#include "backend/cpu/linear/integer/rows-inl.h"
#include "backend/cpu/linear/weight_scales-inl.h"
#include "backend/cpu/linear/weight_streams.h"

#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH < 4
// These versions of Highway ask for the instructions of this target without naming them all.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",avx512vnni,vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq"
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::HWY_NAMESPACE {

using namespace linear::HWY_NAMESPACE;

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ShortTag = hn::Repartition<std::int16_t, FloatTag>;
using ShortVec = hn::Vec<ShortTag>;
using HalfTag = hn::RebindToUnsigned<ShortTag>;
using HalfVec = hn::Vec<HalfTag>;

constexpr int kQuad = kStreams;                        // rows of a tile, and groups scaled at once
constexpr int kBlocks = static_cast<int>(kLanes) / 4;  // of a vector
constexpr int kTileVectors = 16 / static_cast<int>(kLanes);
constexpr int kIntegerTokens = kLanes >= 16 ? 4 : 2;  // of a register tile
constexpr bool kByBytes = HWY_TARGET == HWY_AVX3_DL;

// Codes of kBits in groups of kGroupSize.
template <int kBits_, int kGroupSize_>
struct Integers {
  static constexpr int kBits = kBits_;
  static constexpr int kGroupSize = kGroupSize_;
  static constexpr int kSlots = (kByBytes ? 8 : 16) / kBits;  // codes of what is multiplied
  static constexpr int kGroupBlocks = kGroupSize * kBits / 128;
  // A group is one or more whole vectors, or a vector holds several groups.
  static constexpr int kAdded = std::max(1, kGroupBlocks / kBlocks);  // vectors summed as they come
  static constexpr int kFolded = kGroupBlocks / kAdded;               // blocks of a group in a vector
  static constexpr int kVectors = kTileVectors * kFolded;             // summed vectors of four groups
  static constexpr std::int64_t kVectorBytes = 4 * kLanes;
  static constexpr std::int64_t kVectorElements = kVectorBytes * 8 / kBits;
  static constexpr std::int64_t kQuadBytes = kVectorBytes * kVectors * kAdded;  // of four groups of a row
  static constexpr std::int64_t kQuadElements = kQuad * kGroupSize;
};

// A row of x: for each of the weight's vectors the integers as its slots, or the high digits as its slots and
// then the low ones; behind all for each group its scale four times, then for each group its sum four times.
// Groups that fill up a quad are zeros.
struct IntegerRowLayout {
  std::int64_t quads = 0;
  std::int64_t scales_at = 0;  // in bytes
  std::int64_t sums_at = 0;
  std::int64_t bytes = 0;
  explicit IntegerRowLayout(const MatrixFormat& format)
      : quads((format.groups() + kQuad - 1) / kQuad),
        scales_at(quads * kQuad * format.group_size * 2),
        sums_at(scales_at + quads * 16 * 4),
        bytes(round_up(sums_at + quads * 16 * 4, 64)) {}
};

// The codes of slot k in their bytes or words.
template <class Codes, int k>
HWY_INLINE HalfVec code_slot(HalfVec words) {
  constexpr int kShift = k * Codes::kBits;
  constexpr unsigned kMask = (1u << Codes::kBits) - 1;
  if constexpr (kByBytes && Codes::kSlots == 1) return words;
  const auto shifted = hn::ShiftRight<kShift>(words);
  if constexpr (kShift + Codes::kBits == 16) return shifted;
  return hn::And(shifted, hn::Set(HalfTag(), static_cast<std::uint16_t>(kByBytes ? kMask * 0x101 : kMask)));
}

#if HWY_TARGET == HWY_AVX3_DL

// The digits of 32 integers.
HWY_INLINE void store_digits(ShortVec q, std::byte* high_at, std::byte* low_at) {
  const ShortTag d;
  const hn::Rebind<std::int8_t, ShortTag> bytes;
  const auto high = hn::ShiftRight<kDigitBits>(hn::Add(q, hn::Set(d, 1 << (kDigitBits - 1))));
  const auto low = hn::Sub(q, hn::ShiftLeft<kDigitBits>(high));
  hn::StoreU(hn::DemoteTo(bytes, high), bytes, reinterpret_cast<std::int8_t*>(high_at));
  hn::StoreU(hn::DemoteTo(bytes, low), bytes, reinterpret_cast<std::int8_t*>(low_at));
}

// What one vector of codes is multiplied by.
template <class Codes>
HWY_INLINE void arrange_vector(const std::int16_t* HWY_RESTRICT q, std::byte* to) {
  const ShortTag d;
  std::byte* low_digits = to + Codes::kVectorElements;
  for (std::int64_t half = 0; half < 2; ++half) {
    std::byte* at = to + half * 2 * kLanes;
    ShortVec v[2];
    if constexpr (Codes::kSlots == 2)
      hn::LoadInterleaved2(d, q + half * 4 * kLanes, v[0], v[1]);
    else
      v[0] = hn::LoadU(d, q + half * 2 * kLanes);
    for (int k = 0; k < Codes::kSlots; ++k)
      store_digits(v[k], at + k * Codes::kVectorBytes, low_digits + (at - to) + k * Codes::kVectorBytes);
  }
}

// dot[c] = the products of the vectors of one group, or of the groups of one vector, with each token.
template <class Codes, int C>
HWY_INLINE void multiply_vectors(const std::byte* at, const std::byte* const (&x)[C], IntVec (&dot)[C]) {
  HalfVec codes[Codes::kAdded][Codes::kSlots];
  HWY_UNROLL(2)
  for (int a = 0; a < Codes::kAdded; ++a) {
    const auto words = hn::BitCast(HalfTag(), load_words(at + a * Codes::kVectorBytes));
    codes[a][0] = code_slot<Codes, 0>(words);
    if constexpr (Codes::kSlots == 2) codes[a][1] = code_slot<Codes, 1>(words);
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    __m512i sum = _mm512_setzero_si512();
    HWY_UNROLL(2)
    for (int digit = 0; digit < 2; ++digit) {
      if (digit == 1) sum = _mm512_slli_epi32(sum, kDigitBits);
      HWY_UNROLL(2)
      for (int a = 0; a < Codes::kAdded; ++a) {
        const std::byte* digits = x[c] + (2 * a + digit) * Codes::kVectorElements;
        HWY_UNROLL(2)
        for (int k = 0; k < Codes::kSlots; ++k)
          sum =
              _mm512_dpbusd_epi32(sum, codes[a][k].raw, _mm512_loadu_si512(digits + k * Codes::kVectorBytes));
      }
    }
    dot[c] = IntVec{sum};
  }
}

#else

template <class Codes>
HWY_INLINE void arrange_vector(const std::int16_t* HWY_RESTRICT q, std::byte* to) {
  const ShortTag d;
  ShortVec v[4];
  if constexpr (Codes::kSlots == 4)
    hn::LoadInterleaved4(d, q, v[0], v[1], v[2], v[3]);
  else
    hn::LoadInterleaved2(d, q, v[0], v[1]);
  for (int k = 0; k < Codes::kSlots; ++k)
    hn::StoreU(v[k], d, reinterpret_cast<std::int16_t*>(to) + k * 2 * kLanes);
}

// sum += products of neighbours, somewhere in the same block.
HWY_INLINE IntVec add_products(IntVec sum, ShortVec a, ShortVec b) {
  auto rest = hn::Zero(IntTag());
  sum = hn::ReorderWidenMulAccumulate(IntTag(), a, b, sum, rest);
  return HWY_ARCH_X86 ? sum : hn::Add(sum, rest);
}

template <class Codes, int C, int k = 0>
HWY_INLINE void add_slots(HalfVec words, const std::byte* const (&x)[C], std::int64_t at, IntVec (&dot)[C]) {
  const auto code = hn::BitCast(ShortTag(), code_slot<Codes, k>(words));
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    const auto* slot = reinterpret_cast<const std::int16_t*>(x[c] + at) + k * 2 * kLanes;
    dot[c] = add_products(dot[c], code, hn::LoadU(ShortTag(), slot));
  }
  if constexpr (k + 1 < Codes::kSlots) add_slots<Codes, C, k + 1>(words, x, at, dot);
}

template <class Codes, int C>
HWY_INLINE void multiply_vectors(const std::byte* at, const std::byte* const (&x)[C], IntVec (&dot)[C]) {
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) dot[c] = hn::Zero(IntTag());
  HWY_UNROLL(8)
  for (int a = 0; a < Codes::kAdded; ++a) {
    const auto words = hn::BitCast(HalfTag(), load_words(at + a * Codes::kVectorBytes));
    add_slots<Codes, C>(words, x, a * 2 * Codes::kVectorElements, dot);
  }
}

#endif

// `q` has room for the padded row.
template <class Codes>
void arrange_integers(const MatrixFormat& format, const float* HWY_RESTRICT row, std::int16_t* HWY_RESTRICT q,
                      std::byte* to) {
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  std::memset(scales, 0, static_cast<std::size_t>(layout.bytes - layout.scales_at));
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale = 0;
    float sum = 0;
    round_group(row + g * Codes::kGroupSize, Codes::kGroupSize, q + g * Codes::kGroupSize, scale, sum);
    for (int r = 0; r < kQuad; ++r) scales[g * kQuad + r] = scale, sums[g * kQuad + r] = sum;
  }
  std::fill(q + format.columns, q + layout.quads * Codes::kQuadElements, std::int16_t{0});
  for (std::int64_t i = 0; i < layout.quads * Codes::kQuadElements; i += Codes::kVectorElements)
    arrange_vector<Codes>(q + i, to + 2 * i);
}

// In each block the sums of the blocks of a, b, c, e.
HWY_INLINE IntVec sum_in_blocks(IntVec a, IntVec b, IntVec c, IntVec e) {
  const IntTag d;
  const hn::Repartition<std::int64_t, IntTag> pairs;
  const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)));
}

// Neighbouring blocks added, those of `low` first.
HWY_INLINE IntVec fold_blocks(IntVec low, IntVec high) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return hn::Add(IntVec{_mm512_shuffle_i32x4(low.raw, high.raw, 0x88)},
                 IntVec{_mm512_shuffle_i32x4(low.raw, high.raw, 0xdd)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(hn::ConcatLowerLower(IntTag(), high, low), hn::ConcatUpperUpper(IntTag(), high, low));
#else
  return hn::Add(low, high);  // never called: a vector is one block
#endif
}

// Four groups of four rows times C tokens, added to acc.
template <class Codes, int C>
HWY_INLINE void add_quad(const std::byte* const (&at)[kQuad], const std::byte* const (&x)[C],
                         const float* scales, const float* biases, const float* const (&x_scales)[C],
                         const float* const (&x_sums)[C], FloatVec (&acc)[C][kTileVectors]) {
  const FloatTag d;
  IntVec sums[C][Codes::kVectors];
  HWY_UNROLL(4)
  for (int v = 0; v < Codes::kVectors; ++v) {
    const std::byte* x_at[C];
    for (int c = 0; c < C; ++c) x_at[c] = x[c] + v * Codes::kAdded * 2 * Codes::kVectorElements;
    IntVec dot[kQuad][C];
    HWY_UNROLL(4)
    for (int r = 0; r < kQuad; ++r)
      multiply_vectors<Codes, C>(at[r] + v * Codes::kAdded * Codes::kVectorBytes, x_at, dot[r]);
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) sums[c][v] = sum_in_blocks(dot[0][c], dot[1][c], dot[2][c], dot[3][c]);
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    HWY_UNROLL(2)
    for (int count = Codes::kVectors; count > kTileVectors; count /= 2)
      for (int i = 0; i < count / 2; ++i) sums[c][i] = fold_blocks(sums[c][2 * i], sums[c][2 * i + 1]);
    HWY_UNROLL(4)
    for (int i = 0; i < kTileVectors; ++i) {
      const std::int64_t lane = i * kLanes;
      const auto dot = hn::Mul(hn::ConvertTo(d, sums[c][i]), hn::LoadU(d, x_scales[c] + lane));
      acc[c][i] = hn::MulAdd(hn::LoadU(d, scales + lane), dot, acc[c][i]);
      acc[c][i] = hn::MulAdd(hn::LoadU(d, biases + lane), hn::LoadU(d, x_sums[c] + lane), acc[c][i]);
    }
  }
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// Sixteen bytes of each of four rows.
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
#endif

// Scales or biases of four rows, [group][row], zeros up to whole quads.
HWY_INLINE void read_quad(const std::byte* const (&rows)[kQuad], ScaleType type, std::int64_t groups,
                          float* HWY_RESTRICT line, float* HWY_RESTRICT to) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if (type == ScaleType::bf16 && groups % 8 == 0) return read_bf16_quad(rows, groups, to);
#endif
  const FloatTag d;
  const std::int64_t step = round_up(groups, kLanes);
  for (int r = 0; r < kQuad; ++r) read_scales(rows[r], type, groups, line + r * step);
  for (std::int64_t g = 0; g < groups; g += kLanes)
    hn::StoreInterleaved4(hn::LoadU(d, line + g), hn::LoadU(d, line + step + g),
                          hn::LoadU(d, line + 2 * step + g), hn::LoadU(d, line + 3 * step + g), d,
                          to + 4 * g);
}

HWY_INLINE void read_quad_groups(const MatrixFormat& format, const Matrix& matrix,
                                 const std::int64_t (&rows)[kQuad], float* line, float* scales,
                                 float* biases) {
  const std::byte* scale_rows[kQuad];
  const std::byte* bias_rows[kQuad];
  for (int r = 0; r < kQuad; ++r) {
    scale_rows[r] = matrix.scales + rows[r] * format.scale_row_bytes;
    bias_rows[r] = matrix.biases + rows[r] * format.bias_row_bytes;
  }
  read_quad(scale_rows, format.scale_type, format.groups(), line, scales);
  read_quad(bias_rows, format.bias_type, format.groups(), line, biases);
}

// Four rows times C tokens, straight from the packed codes: out[c][r]. Fetches as many bytes from `next` on.
template <class Codes, int C>
HWY_NOINLINE void multiply_integers(const MatrixFormat& format, const std::byte* const (&rows)[kQuad],
                                    const std::byte* const (&next)[kQuad], const float* scales,
                                    const float* biases, const std::byte* const* x, float* HWY_RESTRICT out) {
  const FloatTag d;
  const IntegerRowLayout layout(format);
  FloatVec acc[C][kTileVectors];
  for (auto& token : acc)
    for (auto& one : token) one = hn::Zero(d);
  const std::int64_t whole = format.row_bytes / Codes::kQuadBytes;
  HWY_ALIGN std::byte rest[kQuad][Codes::kQuadBytes];
  for (std::int64_t quad = 0; quad < layout.quads; ++quad) {
    const std::byte* at[kQuad];
    for (int r = 0; r < kQuad; ++r) {
      at[r] = rows[r] + quad * Codes::kQuadBytes;
      if (quad < whole) continue;
      std::memset(rest[r], 0, Codes::kQuadBytes);
      std::memcpy(rest[r], at[r], static_cast<std::size_t>(format.row_bytes - whole * Codes::kQuadBytes));
      at[r] = rest[r];
    }
    fetch_rows<Codes::kQuadBytes>(next, quad * Codes::kQuadBytes);
    const std::byte* integers[C];
    const float* x_scales[C];
    const float* x_sums[C];
    for (int c = 0; c < C; ++c) {
      integers[c] = x[c] + quad * 2 * Codes::kQuadElements;
      x_scales[c] = reinterpret_cast<const float*>(x[c] + layout.scales_at) + quad * 16;
      x_sums[c] = reinterpret_cast<const float*>(x[c] + layout.sums_at) + quad * 16;
    }
    add_quad<Codes, C>(at, integers, scales + quad * 16, biases + quad * 16, x_scales, x_sums, acc);
  }
  const hn::Full128<float> d4;
  for (int c = 0; c < C; ++c) {
    HWY_ALIGN float sums[16];
    for (int i = 0; i < kTileVectors; ++i) hn::Store(acc[c][i], d, sums + i * kLanes);
    const auto low = hn::Add(hn::Load(d4, sums), hn::Load(d4, sums + 4));
    const auto high = hn::Add(hn::Load(d4, sums + 8), hn::Load(d4, sums + 12));
    hn::StoreU(hn::Add(low, high), d4, out + c * kQuad);
  }
}

// Calls f with the kind of codes `format` has.
template <class F>
HWY_INLINE void with_codes(const MatrixFormat& format, F&& f) {
  const bool nibbles = format.storage == Storage::affine4;
  switch (format.group_size) {
    case 32:
      return nibbles ? f(Integers<4, 32>()) : f(Integers<8, 32>());
    case 64:
      return nibbles ? f(Integers<4, 64>()) : f(Integers<8, 64>());
    default:
      return nibbles ? f(Integers<4, 128>()) : f(Integers<8, 128>());
  }
}

}  // namespace sluice::backend::cpu::linear::integer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
