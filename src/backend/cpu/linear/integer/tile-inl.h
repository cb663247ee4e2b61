// The integer product of four rows of a weight with a few rows of x, straight from the packed codes. Included
// once per instruction set.
//
// A vector holds 16-byte blocks of one weight row. The products of a block stay in the block, so that four
// rows can be added up side by side; blocks of a group are then folded together, and sixteen numbers, four
// groups by four rows, are scaled at once. Codes of 2 and 4 bits, and of 8 where the processor adds products
// of bytes up in 32 bits, are multiplied as bytes by the two digits of x; others as words of sixteen bits.
#if defined(SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#endif

#include "backend/cpu/linear/integer/codes-inl.h"
#include "backend/cpu/linear/integer/quad_groups-inl.h"
#include "backend/cpu/linear/integer/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr int kTileVectors = 16 / to_int(kLanes);
constexpr int kIntegerTokens = kLanes >= 16 ? 4 : 2;  // of a register tile

// How groups of kGroupSize fill vectors of kVectorElements codes, of which kBlockElements share a block.
template <int kGroupSize, int kBlockElements>
struct GroupShape {
  static constexpr int kGroupBlocks = kGroupSize / kBlockElements;
  // A group is one or more whole vectors, or a vector holds several groups.
  static constexpr int kAdded = std::max(1, kGroupBlocks / kBlocks);  // vectors summed as they come
  static constexpr int kFolded = kGroupBlocks / kAdded;               // blocks of a group in a vector
  // Summed vectors of four groups; two groups to a block fill one of AVX2, which alone is asked for them.
  static constexpr int kVectors = kGroupBlocks == 0 ? 1 : kTileVectors * kFolded;
  static constexpr std::int64_t kVectorElements = kBlocks * kBlockElements;
};

// Codes of 2, 4 or 8 bits, read from where they lie: slot k of a vector of bytes or words are the codes at
// the bits from k * kBits on.
template <int kBits_, int kGroupSize, Levels kLevels_ = Levels::codes>
struct SlotCodes : GroupShape<kGroupSize, 128 / kBits_> {
  static constexpr int kBits = kBits_;
  static constexpr Levels kLevels = kLevels_;
  static constexpr bool kByBytes = kBits < 8 ? HWY_ARCH_X86 : kHasVnni;
  static constexpr int kSlots = (kByBytes ? 8 : 16) / kBits;
  static constexpr std::int64_t kVectorBytes = 4 * kLanes;
  static constexpr std::int64_t kPast = 0;  // bytes that are read behind the codes
  // Vectors that are summed as they come.
  static constexpr int added(const MatrixFormat&) { return SlotCodes::kAdded; }
};

// Codes of any width, moved into words; groups may be a multiple of kGroupSize.
template <int kBits_, int kGroupSize, Levels kLevels_ = Levels::codes>
struct MovedCodes : GroupShape<kGroupSize, 8> {
  static constexpr int kBits = kBits_;
  static constexpr Levels kLevels = kLevels_;
  static constexpr bool kByBytes = false;
  static constexpr int kSlots = 1;
  static constexpr std::int64_t kVectorBytes = kBlocks * kBits;
  static constexpr std::int64_t kPast = kReadPast;
  static int added(const MatrixFormat& format) {
    return MovedCodes::kAdded * to_int(format.group_size) / kGroupSize;
  }
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
  const HalfTag d;
  if constexpr (Codes::kByBytes && Codes::kSlots == 1) return words;
  auto codes = hn::ShiftRight<kShift>(words);
  if constexpr (kShift + Codes::kBits != 16 || Codes::kLevels != Levels::codes)
    codes = hn::And(codes, hn::Set(d, static_cast<std::uint16_t>(Codes::kByBytes ? kMask * 0x101 : kMask)));
  if constexpr (Codes::kLevels == Levels::codes) return codes;
  const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
  const auto levels = hn::BitCast(d, hn::TableLookupBytes(table, hn::BitCast(ByteTag(), codes)));
  return Codes::kByBytes ? levels : hn::And(levels, hn::Set(d, std::uint16_t{0xff}));
}

// The digits of some integers.
HWY_INLINE void store_digits(ShortVec q, std::byte* high_at, std::byte* low_at) {
  const ShortTag d;
  const hn::Rebind<std::int8_t, ShortTag> bytes;
  const auto high = hn::ShiftRight<kDigitBits>(hn::Add(q, hn::Set(d, 1 << (kDigitBits - 1))));
  const auto low = hn::Sub(q, hn::ShiftLeft<kDigitBits>(high));
  hn::StoreU(hn::DemoteTo(bytes, high), bytes, reinterpret_cast<std::int8_t*>(high_at));
  hn::StoreU(hn::DemoteTo(bytes, low), bytes, reinterpret_cast<std::int8_t*>(low_at));
}

template <class Codes>
HWY_INLINE void arrange_digits(const std::int16_t* HWY_RESTRICT q, std::byte* to) {
  const ShortTag d;
  std::byte* low_digits = to + Codes::kVectorElements;
  for (std::int64_t half = 0; half < 2; ++half) {
    std::byte* at = to + half * 2 * kLanes;
    ShortVec v[4];
    if constexpr (Codes::kSlots == 4)
      hn::LoadInterleaved4(d, q + half * 8 * kLanes, v[0], v[1], v[2], v[3]);
    else if constexpr (Codes::kSlots == 2)
      hn::LoadInterleaved2(d, q + half * 4 * kLanes, v[0], v[1]);
    else
      v[0] = hn::LoadU(d, q + half * 2 * kLanes);
    for (int k = 0; k < Codes::kSlots; ++k)
      store_digits(v[k], at + k * Codes::kVectorBytes, low_digits + (at - to) + k * Codes::kVectorBytes);
  }
}

// What one vector of codes is multiplied by.
template <class Codes>
HWY_INLINE void arrange_vector(const std::int16_t* HWY_RESTRICT q, std::byte* to) {
  if constexpr (Codes::kByBytes) return arrange_digits<Codes>(q, to);
  const ShortTag d;
  ShortVec v[4];
  if constexpr (Codes::kSlots == 4)
    hn::LoadInterleaved4(d, q, v[0], v[1], v[2], v[3]);
  else if constexpr (Codes::kSlots == 2)
    hn::LoadInterleaved2(d, q, v[0], v[1]);
  else
    v[0] = hn::LoadU(d, q);
  for (int k = 0; k < Codes::kSlots; ++k)
    hn::StoreU(v[k], d, reinterpret_cast<std::int16_t*>(to) + k * kWords);
}

#if HWY_ARCH_X86

// The products of bytes with the digits of one token, of which the high ones count 2^kDigitBits.
template <class Codes>
HWY_INLINE IntVec sum_byte_products(const HalfVec (&codes)[Codes::kAdded][Codes::kSlots],
                                    const std::byte* x) {
  using Sum = std::conditional_t<kHasVnni, IntVec, ShortVec>;
  // A product of neighbours is at most 2 * 127 * (the largest code): so many of them fit sixteen bits.
  constexpr int kLargest = Codes::kLevels == Levels::e2m1 ? 24 : (1 << Codes::kBits) - 1;
  static_assert(kHasVnni || Codes::kAdded * Codes::kSlots * 2 * 127 * kLargest < 1 << 15);
  const ShortTag d;
  const auto sum_of = [&](int digit) HWY_ATTR {
    Sum sum = hn::Zero(hn::DFromV<Sum>());
    HWY_UNROLL(4)
    for (int a = 0; a < Codes::kAdded; ++a) {
      HWY_UNROLL(4)
      for (int k = 0; k < Codes::kSlots; ++k) {
        const std::byte* at = x + (2 * a + digit) * Codes::kVectorElements + k * Codes::kVectorBytes;
        sum = add_byte_products(sum, codes[a][k], hn::LoadU(d, reinterpret_cast<const std::int16_t*>(at)));
      }
    }
    return sum;
  };
  if constexpr (kHasVnni) {
    return hn::Add(hn::ShiftLeft<kDigitBits>(sum_of(0)), sum_of(1));
  } else {
    const auto high = add_products(hn::Zero(IntTag()), sum_of(0), hn::Set(d, 1 << kDigitBits));
    return add_products(high, sum_of(1), hn::Set(d, 1));
  }
}

#endif

template <class Codes, int C>
HWY_INLINE void multiply_bytes(const std::byte* at, const std::byte* const (&x)[C], IntVec (&dot)[C]) {
#if HWY_ARCH_X86
  HalfVec codes[Codes::kAdded][Codes::kSlots];
  HWY_UNROLL(4)
  for (int a = 0; a < Codes::kAdded; ++a) {
    const auto words = hn::BitCast(HalfTag(), load_words(at + a * Codes::kVectorBytes));
    codes[a][0] = code_slot<Codes, 0>(words);
    if constexpr (Codes::kSlots > 1) codes[a][1] = code_slot<Codes, 1>(words);
    if constexpr (Codes::kSlots > 2) {
      codes[a][2] = code_slot<Codes, 2>(words);
      codes[a][3] = code_slot<Codes, 3>(words);
    }
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) dot[c] = sum_byte_products<Codes>(codes, x[c]);
#endif
}

template <class Codes, int C, int k = 0>
HWY_INLINE void add_slots(HalfVec words, const std::byte* const (&x)[C], std::int64_t at, IntVec (&dot)[C]) {
  const auto code = hn::BitCast(ShortTag(), code_slot<Codes, k>(words));
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    const auto* slot = reinterpret_cast<const std::int16_t*>(x[c] + at) + k * kWords;
    dot[c] = add_products(dot[c], code, hn::LoadU(ShortTag(), slot));
  }
  if constexpr (k + 1 < Codes::kSlots) add_slots<Codes, C, k + 1>(words, x, at, dot);
}

// dot[r][c] = the products of the vectors of one group, or of the groups of one vector, with each token.
template <class Codes, int C>
HWY_INLINE void multiply_slots(const std::byte* const (&rows)[kQuad], const std::byte* const (&x)[C],
                               IntVec (&dot)[kQuad][C]) {
  HWY_UNROLL(4)
  for (int r = 0; r < kQuad; ++r) {
    if constexpr (Codes::kByBytes) {
      multiply_bytes<Codes, C>(rows[r], x, dot[r]);
    } else {
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) dot[r][c] = hn::Zero(IntTag());
      HWY_UNROLL(8)
      for (int a = 0; a < Codes::kAdded; ++a)
        add_slots<Codes, C>(hn::BitCast(HalfTag(), load_words(rows[r] + a * Codes::kVectorBytes)), x,
                            a * 2 * Codes::kVectorElements, dot[r]);
    }
  }
}

// The same with `added` vectors of codes that are moved into words.
template <class Codes, int C>
HWY_INLINE void multiply_moved(const std::byte* const (&rows)[kQuad], int added,
                               const std::byte* const (&x)[C], IntVec (&dot)[kQuad][C]) {
  const Unpacker<Codes::kBits, Codes::kLevels> unpack;
  for (auto& row : dot)
    for (auto& one : row) one = hn::Zero(IntTag());
  for (int a = 0; a < added; ++a) {
    ShortVec integers[C];
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c)
      integers[c] =
          hn::LoadU(ShortTag(), reinterpret_cast<const std::int16_t*>(x[c] + a * 2 * Codes::kVectorElements));
    HWY_UNROLL(4)
    for (int r = 0; r < kQuad; ++r) {
      const auto codes = unpack(rows[r] + a * Codes::kVectorBytes);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) dot[r][c] = add_products(dot[r][c], codes, integers[c]);
    }
  }
}

// `q` has room for the padded row.
template <class Codes>
void arrange_integers(const MatrixFormat& format, const float* HWY_RESTRICT row, std::int16_t* HWY_RESTRICT q,
                      std::byte* to) {
  const IntegerRowLayout layout(format);
  auto* scales = reinterpret_cast<float*>(to + layout.scales_at);
  auto* sums = reinterpret_cast<float*>(to + layout.sums_at);
  std::memset(scales, 0, to_size(layout.bytes - layout.scales_at));
  const std::int64_t size = format.group_size;
  for (std::int64_t g = 0; g < format.groups(); ++g) {
    float scale = 0;
    float sum = 0;
    round_group(row + g * size, size, q + g * size, scale, sum);
    for (int r = 0; r < kQuad; ++r) scales[g * kQuad + r] = scale, sums[g * kQuad + r] = sum;
  }
  const std::int64_t padded = layout.quads * kQuad * size;
  std::fill(q + format.columns, q + padded, std::int16_t{0});
  for (std::int64_t i = 0; i < padded; i += Codes::kVectorElements) arrange_vector<Codes>(q + i, to + 2 * i);
}

// In each block the sums of the blocks of four rows.
HWY_INLINE IntVec sum_in_blocks(const IntVec (&rows)[kQuad]) {
  const IntTag d;
  const hn::Repartition<std::int64_t, IntTag> pairs;
  const auto add = [&](IntVec a, IntVec b) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto ab = add(rows[0], rows[1]);
  const auto ce = add(rows[2], rows[3]);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)));
}

// Of vectors of which a block holds two groups: the sums of the first two groups, then those of the others.
HWY_INLINE void sum_in_half_blocks(const IntVec (&rows)[kQuad], IntVec (&sums)[2]) {
#if HWY_TARGET == HWY_AVX2
  const IntTag d;
  const hn::Repartition<std::int64_t, IntTag> pairs;
  const auto add = [&](IntVec ab, IntVec ce) HWY_ATTR {
    const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
    const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
    return hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));
  };
  const auto even = add(hn::InterleaveLower(d, rows[0], rows[1]), hn::InterleaveLower(d, rows[2], rows[3]));
  const auto odd = add(hn::InterleaveUpper(d, rows[0], rows[1]), hn::InterleaveUpper(d, rows[2], rows[3]));
  sums[0] = hn::ConcatLowerLower(d, odd, even);
  sums[1] = hn::ConcatUpperUpper(d, odd, even);
#else
  (void)rows, (void)sums;
#endif
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

// Four groups of four rows and of C tokens.
template <int C>
struct QuadOperands {
  const std::byte* rows[kQuad];
  const float* scales;  // [group][row]
  const float* biases;
  const std::byte* x[C];
  const float* x_scales[C];
  const float* x_sums[C];
};

// Their products, added to acc.
template <class Codes, int C>
HWY_INLINE void add_quad(const QuadOperands<C>& quad, int added, FloatVec (&acc)[C][kTileVectors]) {
  const FloatTag d;
  IntVec sums[C][std::max(Codes::kVectors, kTileVectors)];
  HWY_UNROLL(4)
  for (int v = 0; v < Codes::kVectors; ++v) {
    const std::byte* x_at[C];
    for (int c = 0; c < C; ++c) x_at[c] = quad.x[c] + v * added * 2 * Codes::kVectorElements;
    const std::byte* rows[kQuad];
    for (int r = 0; r < kQuad; ++r) rows[r] = quad.rows[r] + v * added * Codes::kVectorBytes;
    IntVec dot[kQuad][C];
    if constexpr (Codes::kSlots > 1 || Codes::kByBytes)
      multiply_slots<Codes, C>(rows, x_at, dot);
    else
      multiply_moved<Codes, C>(rows, added, x_at, dot);
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) {
      const IntVec rows_of_token[kQuad] = {dot[0][c], dot[1][c], dot[2][c], dot[3][c]};
      if constexpr (Codes::kGroupBlocks == 0)
        sum_in_half_blocks(rows_of_token, sums[c]);
      else
        sums[c][v] = sum_in_blocks(rows_of_token);
    }
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    HWY_UNROLL(2)
    for (int count = Codes::kVectors; count > kTileVectors; count /= 2)
      for (int i = 0; i < count / 2; ++i) sums[c][i] = fold_blocks(sums[c][2 * i], sums[c][2 * i + 1]);
    HWY_UNROLL(4)
    for (int i = 0; i < kTileVectors; ++i) {
      const std::int64_t lane = i * kLanes;
      const auto dot = hn::Mul(hn::ConvertTo(d, sums[c][i]), hn::LoadU(d, quad.x_scales[c] + lane));
      acc[c][i] = hn::MulAdd(hn::LoadU(d, quad.scales + lane), dot, acc[c][i]);
      acc[c][i] =
          hn::MulAdd(hn::LoadU(d, quad.biases + lane), hn::LoadU(d, quad.x_sums[c] + lane), acc[c][i]);
    }
  }
}

// Four rows of a weight, the rows to fetch meanwhile, and the end of what may be read.
struct QuadRows {
  const std::byte* rows[kQuad];
  const std::byte* next[kQuad];
  const std::byte* end;
  const float* scales;  // [group][row], zeros up to whole quads
  const float* biases;
};

// Four rows times C tokens, straight from the packed codes: out[c][r].
template <class Codes, int C>
HWY_NOINLINE void multiply_integers(const MatrixFormat& format, const QuadRows& w, const std::byte* const* x,
                                    float* HWY_RESTRICT out) {
  const FloatTag d;
  const IntegerRowLayout layout(format);
  const int added = Codes::added(format);
  FloatVec acc[C][kTileVectors];
  for (auto& token : acc)
    for (auto& one : token) one = hn::Zero(d);
  const std::int64_t quad_elements = Codes::kVectors * added * Codes::kVectorElements;
  const std::int64_t quad_bytes = quad_elements * Codes::kBits / 8;
  HWY_ALIGN std::byte rest[kQuad][kQuad * 128 + kReadPast];
  for (std::int64_t quad = 0; quad < layout.quads; ++quad) {
    QuadOperands<C> operands;
    const std::int64_t begin = quad * quad_bytes;
    const std::int64_t left = format.row_bytes - begin;
    for (int r = 0; r < kQuad; ++r) {
      operands.rows[r] = w.rows[r] + begin;
      if (left >= quad_bytes && (Codes::kPast == 0 || w.end - operands.rows[r] >= quad_bytes + Codes::kPast))
        continue;
      std::memset(rest[r], 0, to_size(quad_bytes + Codes::kPast));
      std::memcpy(rest[r], operands.rows[r], to_size(std::min(left, quad_bytes)));
      operands.rows[r] = rest[r];
    }
    fetch_rows(w.next, begin, quad_bytes);
    operands.scales = w.scales + quad * 16;
    operands.biases = w.biases + quad * 16;
    for (int c = 0; c < C; ++c) {
      operands.x[c] = x[c] + quad * 2 * quad_elements;
      operands.x_scales[c] = reinterpret_cast<const float*>(x[c] + layout.scales_at) + quad * 16;
      operands.x_sums[c] = reinterpret_cast<const float*>(x[c] + layout.sums_at) + quad * 16;
    }
    add_quad<Codes, C>(operands, added, acc);
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

template <int kBits, class F>
HWY_INLINE void with_slots(std::int64_t group_size, F&& f) {
  if (group_size == 32) return f(SlotCodes<kBits, 32>());
  if (group_size == 64) return f(SlotCodes<kBits, 64>());
  return f(SlotCodes<kBits, 128>());
}

// Calls f with the kind of codes `format` has.
template <class F>
HWY_INLINE void with_codes(const MatrixFormat& format, F&& f) {
  switch (format.storage) {
    case Storage::affine2:
      if (!HWY_ARCH_X86 || format.group_size == 32) return f(MovedCodes<2, 32>());
      return format.group_size == 64 ? f(SlotCodes<2, 64>()) : f(SlotCodes<2, 128>());
    case Storage::affine3:
      return f(MovedCodes<3, 32>());
    case Storage::affine4:
      return with_slots<4>(format.group_size, f);
    case Storage::affine5:
      return f(MovedCodes<5, 32>());
    case Storage::affine6:
      return f(MovedCodes<6, 32>());
    case Storage::affine8:
      return with_slots<8>(format.group_size, f);
    default:
      if (format.group_size == 32) return f(SlotCodes<4, 32, Levels::e2m1>());
#if HWY_TARGET == HWY_AVX2
      return f(SlotCodes<4, 16, Levels::e2m1>());
#else
      return f(MovedCodes<4, 16, Levels::e2m1>());
#endif
  }
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
