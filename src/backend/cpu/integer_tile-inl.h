// The integer product of four rows of a weight with a few rows of x, straight from the packed codes. Included
// once per instruction set.
//
// A vector holds 16-byte blocks of one weight row. The products of a block stay in the block, so that four
// rows can be added up side by side; blocks of a group are then folded together, and sixteen numbers, four
// groups by four rows, are scaled at once.
#if defined(SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#endif

#include <hwy/cache_control.h>

#include "backend/cpu/integer_rows-inl.h"
#include "backend/cpu/weight_scales-inl.h"

#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH < 4
// These versions of Highway ask for the instructions of this target without naming them all.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",avx512vnni,vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq"
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ShortTag = hn::Repartition<std::int16_t, FloatTag>;
using ShortVec = hn::Vec<ShortTag>;
using HalfTag = hn::RebindToUnsigned<ShortTag>;
using HalfVec = hn::Vec<HalfTag>;

constexpr int kQuad = 4;                               // rows of a tile, and groups scaled at once
constexpr int kBlocks = static_cast<int>(kLanes) / 4;  // of a vector
constexpr int kTileVectors = 16 / static_cast<int>(kLanes);
constexpr int kIntegerTokens = kLanes >= 16 ? 4 : 2;  // of a register tile

// Codes of kBits in groups of kGroupSize.
template <int kBits_, int kGroupSize_>
struct Integers {
  static constexpr int kBits = kBits_;
  static constexpr int kGroupSize = kGroupSize_;
  static constexpr int kSlots = 16 / kBits;  // codes of a 16-bit word
  static constexpr int kGroupBlocks = kGroupSize * kBits / 128;
  // A group is one or more whole vectors, or a vector holds several groups.
  static constexpr int kAdded = std::max(1, kGroupBlocks / kBlocks);  // vectors summed as they come
  static constexpr int kFolded = kGroupBlocks / kAdded;               // blocks of a group in a vector
  static constexpr int kVectors = kTileVectors * kFolded;             // summed vectors of four groups
  static constexpr std::int64_t kVectorBytes = 4 * kLanes;
  static constexpr std::int64_t kVectorElements = kSlots * 2 * kLanes;
  static constexpr std::int64_t kQuadBytes = kVectorBytes * kVectors * kAdded;  // of four groups of a row
  static constexpr std::int64_t kQuadElements = kQuad * kGroupSize;
};

// A row of x: the integers as the slots of the weight's vectors, then for each group its scale four times,
// then for each group its sum four times; groups that fill up a quad are zeros.
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

// `q` has room for the padded row.
template <class Codes>
void arrange_integers(const MatrixFormat& format, const float* HWY_RESTRICT row, std::int16_t* HWY_RESTRICT q,
                      std::byte* to) {
  const ShortTag d;
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  std::memset(scales, 0, static_cast<std::size_t>(layout.bytes - layout.scales_at));
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale;
    float sum;
    round_group(row + g * Codes::kGroupSize, Codes::kGroupSize, q + g * Codes::kGroupSize, scale, sum);
    for (int r = 0; r < kQuad; ++r) scales[g * kQuad + r] = scale, sums[g * kQuad + r] = sum;
  }
  std::fill(q + format.columns, q + layout.quads * Codes::kQuadElements, std::int16_t{0});
  auto* slots = reinterpret_cast<std::int16_t*>(to);
  for (std::int64_t i = 0; i < layout.quads * Codes::kQuadElements; i += Codes::kVectorElements) {
    ShortVec v[4];
    if constexpr (Codes::kSlots == 4)
      hn::LoadInterleaved4(d, q + i, v[0], v[1], v[2], v[3]);
    else
      hn::LoadInterleaved2(d, q + i, v[0], v[1]);
    for (int k = 0; k < Codes::kSlots; ++k) hn::StoreU(v[k], d, slots + i + k * 2 * kLanes);
  }
}

// sum += products of neighbours, somewhere in the same block.
HWY_INLINE IntVec add_products(IntVec sum, ShortVec a, ShortVec b) {
#if HWY_TARGET == HWY_AVX3_DL
  return IntVec{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#else
  auto rest = hn::Zero(IntTag());
  sum = hn::ReorderWidenMulAccumulate(IntTag(), a, b, sum, rest);
  return HWY_ARCH_X86 ? sum : hn::Add(sum, rest);
#endif
}

template <class Codes, int k>
HWY_INLINE ShortVec code_slot(HalfVec words) {
  const HalfTag d;
  constexpr int kShift = k * Codes::kBits;
  const auto shifted = hn::ShiftRight<kShift>(words);
  if constexpr (kShift + Codes::kBits == 16) return hn::BitCast(ShortTag(), shifted);
  return hn::BitCast(ShortTag(), hn::And(shifted, hn::Set(d, (1u << Codes::kBits) - 1)));
}

template <class Codes, int C, int k = 0>
HWY_INLINE void add_slots(HalfVec words, const std::int16_t* const (&x)[C], std::int64_t at,
                          IntVec (&dot)[C]) {
  const auto code = code_slot<Codes, k>(words);
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c)
    dot[c] = add_products(dot[c], code, hn::LoadU(ShortTag(), x[c] + at + k * 2 * kLanes));
  if constexpr (k + 1 < Codes::kSlots) add_slots<Codes, C, k + 1>(words, x, at, dot);
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
HWY_INLINE void add_quad(const std::byte* const (&at)[kQuad], const std::int16_t* const (&x)[C],
                         const float* scales, const float* biases, const float* const (&x_scales)[C],
                         const float* const (&x_sums)[C], FloatVec (&acc)[C][kTileVectors]) {
  const FloatTag d;
  IntVec sums[C][Codes::kVectors];
  HWY_UNROLL(4)
  for (int v = 0; v < Codes::kVectors; ++v) {
    IntVec dot[kQuad][C];
    HWY_UNROLL(4)
    for (int r = 0; r < kQuad; ++r) {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) dot[r][c] = hn::Zero(IntTag());
      HWY_UNROLL(8)
      for (int a = 0; a < Codes::kAdded; ++a) {
        const std::int64_t vector = v * Codes::kAdded + a;
        const auto words = hn::BitCast(HalfTag(), load_words(at[r] + vector * Codes::kVectorBytes));
        add_slots<Codes, C>(words, x, vector * Codes::kVectorElements, dot[r]);
      }
    }
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

// Scales or biases of four rows, [group][row], zeros up to whole quads.
HWY_INLINE void read_quad(const std::byte* const (&rows)[kQuad], std::int64_t row_bytes, ScaleType type,
                          std::int64_t groups, float* HWY_RESTRICT line, float* HWY_RESTRICT to) {
  const FloatTag d;
  std::int64_t step = groups;
  if (groups % kQuad == 0 && rows[kQuad - 1] - rows[0] == (kQuad - 1) * row_bytes) {
    // Behind one another: read as one row.
    read_scales(rows[0], type, kQuad * groups, line);
  } else {
    step = round_up(groups, kLanes);
    for (int r = 0; r < kQuad; ++r) read_scales(rows[r], type, groups, line + r * step);
  }
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
  read_quad(scale_rows, format.scale_row_bytes, format.scale_type, format.groups(), line, scales);
  read_quad(bias_rows, format.bias_row_bytes, format.bias_type, format.groups(), line, biases);
}

// Four rows times C tokens, straight from the packed codes. out[c * out_step + r].
template <class Codes, int C>
HWY_NOINLINE void multiply_integers(const MatrixFormat& format, const std::byte* const (&rows)[kQuad],
                                    const float* scales, const float* biases, const std::byte* const* x,
                                    std::int64_t ahead, float* HWY_RESTRICT out, std::int64_t out_step) {
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
      if (quad < whole) {
        // In the order of the addresses, which the processor's own prefetchers understand.
        const std::byte* next = rows[0] + ahead + (quad * kQuad + r) * Codes::kQuadBytes;
        for (std::int64_t line = 0; line < Codes::kQuadBytes; line += 64) hwy::Prefetch(next + line);
      } else {
        std::memset(rest[r], 0, Codes::kQuadBytes);
        std::memcpy(rest[r], at[r], static_cast<std::size_t>(format.row_bytes - whole * Codes::kQuadBytes));
        at[r] = rest[r];
      }
    }
    const std::int16_t* integers[C];
    const float* x_scales[C];
    const float* x_sums[C];
    for (int c = 0; c < C; ++c) {
      integers[c] = reinterpret_cast<const std::int16_t*>(x[c]) + quad * Codes::kQuadElements;
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
    hn::StoreU(hn::Add(low, high), d4, out + c * out_step);
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

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
