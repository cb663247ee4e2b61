// The integer product of four rows of a weight with a few rows of x, computed from the packed codes. Included
// once per instruction set.
//
// A vector has 16-byte blocks of one weight row. The products of a block stay in the block, so four rows can
// be added up together; then the blocks of a group are added, and sixteen numbers, four groups by four rows,
// are scaled at once. Codes of 2 and 4 bits, and of 8 if the processor adds byte products in 32 bits, are
// multiplied as bytes by the two digits of x; others as 16-bit words. Bytes of two rows may be interleaved
// ("mixed") before they are multiplied, which halves the steps for adding up.
#if defined(SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_TILE_INL_H_
#endif

#include "backend/cpu/linear/integer/code_kinds-inl.h"
#include "backend/cpu/linear/integer/direct-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

// Rows whose bytes are mixed before they are multiplied. With VNNI, adding up costs less than reading digits
// of x twice.
template <class Codes>
constexpr int kMixed = kHasVnni&& Codes::kGroupBlocks > 0 ? 1 : 2;

// Bytes per column in a row of x: those of its integer, or of its digits for each of the mixed rows.
template <class Codes>
constexpr std::int64_t kColumnBytes = Codes::kByBytes ? 2 * kMixed<Codes> : 2;

// The codes of slot k, each in its byte or word.
template <class Codes, int k>
HWY_INLINE HalfVec code_slot(HalfVec words) {
  constexpr int kShift = Codes::kByBytes ? k * Codes::kBits : 16 - (Codes::kSlots - k) * Codes::kBits;
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

// The high or the low digits of some integers.
template <int kDigit>
HWY_INLINE hn::Vec<hn::Rebind<std::int8_t, ShortTag>> digits_of(ShortVec q) {
  const ShortTag d;
  const auto high = hn::ShiftRight<kDigitBits>(hn::Add(q, hn::Set(d, 1 << (kDigitBits - 1))));
  const auto digits = kDigit == 0 ? high : hn::Sub(q, hn::ShiftLeft<kDigitBits>(high));
  return hn::DemoteTo(hn::Rebind<std::int8_t, ShortTag>(), digits);
}

// Stores the slots of two halves of a vector's integers as digits, for each of the mixtures.
template <class Codes, int kDigit>
HWY_INLINE void store_digits(const ShortVec (&halves)[2][4], std::byte* to) {
  const WordTag d;
  const hn::Repartition<std::int8_t, WordTag> bytes;
  auto* at = reinterpret_cast<std::uint32_t*>(to) + kDigit * kMixed<Codes> * Codes::kSlots * kLanes;
  for (int k = 0; k < Codes::kSlots; ++k, at += kLanes) {
    const auto digits =
        hn::BitCast(d, hn::Combine(bytes, digits_of<kDigit>(halves[1][k]), digits_of<kDigit>(halves[0][k])));
    if constexpr (kMixed<Codes> == 1) {
      hn::StoreU(digits, d, at);
    } else {
      hn::StoreU(hn::InterleaveLower(d, digits, digits), d, at);
      hn::StoreU(hn::InterleaveUpper(d, digits, digits), d, at + Codes::kSlots * kLanes);
    }
  }
}

template <class Codes>
HWY_INLINE void arrange_digits(const std::int16_t* HWY_RESTRICT q, std::byte* to) {
  const ShortTag d;
  ShortVec v[2][4];
  for (std::int64_t half = 0; half < 2; ++half) {
    if constexpr (Codes::kSlots == 4)
      hn::LoadInterleaved4(d, q + half * 8 * kLanes, v[half][0], v[half][1], v[half][2], v[half][3]);
    else if constexpr (Codes::kSlots == 2)
      hn::LoadInterleaved2(d, q + half * 4 * kLanes, v[half][0], v[half][1]);
    else
      v[half][0] = hn::LoadU(d, q + half * 2 * kLanes);
  }
  store_digits<Codes, 0>(v, to);
  store_digits<Codes, 1>(v, to);
}

// Stores the counterpart of one vector of codes.
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

// Number of groups per block, whose products are kept apart.
template <class Codes>
constexpr int kParts = Codes::kGroupBlocks == 0 ? 2 : 1;

// Mixed codes of two rows: 4-byte words from the lower halves of their blocks alternating between the rows,
// then those from the upper halves.
template <class Codes>
using MixedCodes = HalfVec[Codes::kAdded][2][Codes::kSlots];

// The products of bytes with the digits of one token, with the high digits weighted by 2^kDigitBits, for
// mixtures [first, last) of the codes.
template <class Codes>
HWY_INLINE IntVec sum_byte_products(const MixedCodes<Codes>& codes, int first, int last, const std::byte* x) {
  using Sum = std::conditional_t<kHasVnni, IntVec, ShortVec>;
  constexpr std::int64_t kBytes = 4 * kLanes;
  const ShortTag d;
  const auto sum_of = [&](Sum sum, int digit, int begin, int end) HWY_ATTR {
    HWY_UNROLL(4)
    for (int a = begin; a < end; ++a) {
      HWY_UNROLL(2)
      for (int m = first; m < last; ++m) {
        HWY_UNROLL(4)
        for (int k = 0; k < Codes::kSlots; ++k) {
          const std::byte* at = x + (((2 * a + digit) * kMixed<Codes> + m) * Codes::kSlots + k) * kBytes;
          const auto digits = hn::LoadU(d, reinterpret_cast<const std::int16_t*>(at));
          sum = add_byte_products(sum, codes[a][m][k], digits);
        }
      }
    }
    return sum;
  };
  const Sum zero = hn::Zero(hn::DFromV<Sum>());
  if constexpr (kHasVnni) {
    const Sum high = sum_of(zero, 0, 0, Codes::kAdded);
    return sum_of(hn::ShiftLeft<kDigitBits>(high), 1, 0, Codes::kAdded);
  } else {
    // A sum of two neighbouring products is at most 2 * 127 * (the largest code): kFit is for how many
    // vectors such sums fit into 16 bits.
    constexpr int kLargest = Codes::kLevels == Levels::e2m1 ? 24 : (1 << Codes::kBits) - 1;
    constexpr int kFit = std::min(Codes::kAdded, ((1 << 15) - 1) / (2 * Codes::kSlots * 2 * 127 * kLargest));
    static_assert(kFit > 0 && Codes::kAdded % kFit == 0);
    auto sum = hn::Zero(IntTag());
    HWY_UNROLL(4)
    for (int a = 0; a < Codes::kAdded; a += kFit) {
      sum = add_products(sum, sum_of(zero, 0, a, a + kFit), hn::Set(d, 1 << kDigitBits));
      sum = add_products(sum, sum_of(zero, 1, a, a + kFit), hn::Set(d, 1));
    }
    return sum;
  }
}

// The slots of a vector of codes.
template <class Codes>
HWY_INLINE void split_slots(HalfVec words, HalfVec (&codes)[Codes::kSlots]) {
  codes[0] = code_slot<Codes, 0>(words);
  if constexpr (Codes::kSlots > 1) codes[1] = code_slot<Codes, 1>(words);
  if constexpr (Codes::kSlots > 2) {
    codes[2] = code_slot<Codes, 2>(words);
    codes[3] = code_slot<Codes, 3>(words);
  }
}

// Loads a vector of codes, unchanged or as bytes.
template <class Codes>
HWY_INLINE hn::Vec<WordTag> load_codes(const std::byte* at) {
#if HWY_TARGET == HWY_AVX3_DL
  if constexpr (Codes::kVectorBytes != 4 * kLanes)
    return hn::BitCast(WordTag(), unpack_bytes<Codes::kBits, Codes::kLevels>(at));
#endif
  return load_words(at);
}

// dot[part][c] = the products of one row, or of two mixed ones, with each token.
template <class Codes, int C>
HWY_INLINE void multiply_bytes(const std::byte* const* rows, const std::byte* const (&x)[C],
                               IntVec (&dot)[kParts<Codes>][C]) {
  const WordTag d;
  MixedCodes<Codes> codes;
  HWY_UNROLL(4)
  for (int a = 0; a < Codes::kAdded; ++a) {
    const auto first = load_codes<Codes>(rows[0] + a * Codes::kVectorBytes);
    if constexpr (kMixed<Codes> == 1) {
      split_slots<Codes>(hn::BitCast(HalfTag(), first), codes[a][0]);
    } else {
      const auto second = load_codes<Codes>(rows[1] + a * Codes::kVectorBytes);
      split_slots<Codes>(hn::BitCast(HalfTag(), hn::InterleaveLower(d, first, second)), codes[a][0]);
      split_slots<Codes>(hn::BitCast(HalfTag(), hn::InterleaveUpper(d, first, second)), codes[a][1]);
    }
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    if constexpr (kParts<Codes> == 2) {
      dot[0][c] = sum_byte_products<Codes>(codes, 0, 1, x[c]);
      dot[1][c] = sum_byte_products<Codes>(codes, 1, 2, x[c]);
    } else {
      dot[0][c] = sum_byte_products<Codes>(codes, 0, kMixed<Codes>, x[c]);
    }
  }
}

#endif

// Words whose codes are used as stored.
struct StoredWords {
  HWY_INLINE HalfVec operator()(const std::byte* at, bool) const {
    return hn::BitCast(HalfTag(), load_words(at));
  }
};

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

// dot[r][c] = the products of the vectors of one group, or of the groups of one vector, with each token. The
// first vector of a quad may be the matrix's first, before which nothing may be read.
template <class Codes, int C>
HWY_INLINE void multiply_words(const std::byte* const (&rows)[kQuad], bool first,
                               const std::byte* const (&x)[C], IntVec (&dot)[kQuad][C]) {
  using Words = std::conditional_t<Codes::kPast == 0, StoredWords, Mover<Codes::kBits, Codes::kSlots>>;
  const Words words;
  HWY_UNROLL(4)
  for (int r = 0; r < kQuad; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < C; ++c) dot[r][c] = hn::Zero(IntTag());
    HWY_UNROLL(8)
    for (int a = 0; a < Codes::kAdded; ++a)
      add_slots<Codes, C>(words(rows[r] + a * Codes::kVectorBytes, !first || a > 0), x,
                          a * 2 * Codes::kVectorElements, dot[r]);
  }
}

// Some integers of x, whole quads of groups, as the codes lie.
template <class Codes>
void arrange_integers(const std::int16_t* HWY_RESTRICT q, std::int64_t count, std::byte* to) {
  for (std::int64_t i = 0; i < count; i += Codes::kVectorElements)
    arrange_vector<Codes>(q + i, to + kColumnBytes<Codes> * i);
}

// Adds up each block of four rows; block i of the result has the four rows' sums of their blocks i.
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

// The same for two pairs of mixed rows.
HWY_INLINE IntVec sum_mixed(IntVec ab, IntVec ce) {
  const hn::Repartition<std::int64_t, IntTag> pairs;
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  return hn::Add(hn::BitCast(IntTag(), low), hn::BitCast(IntTag(), high));
}

// Adds neighbouring blocks, those of `low` first.
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

// Four groups of four rows and of C tokens. Where general registers are fewer than addresses, but those of
// vectors are not, all but the rows stay at the first group, and an offset is added.
constexpr bool kByOffset = kLanes >= 16;
template <int C>
struct QuadOperands {
  std::int64_t quad = 0;  // kByOffset: which one
  const std::byte* rows[kQuad];
  const float* scales;  // [group][row]
  const float* biases;
  const std::byte* x[C];
  const float* x_scales[C];
  const float* x_sums[C];
};

#if HWY_ARCH_X86
// The sums of vector v for all rows. If a block has two groups, which occurs only with AVX2, those of the
// first two groups are vector 0 and those of the other two vector 1.
template <class Codes, int C, std::size_t kSums>
HWY_INLINE void sum_bytes(const std::byte* const (&rows)[kQuad], const std::byte* const (&x)[C], int v,
                          IntVec (&sums)[C][kSums]) {
  constexpr int kPairs = kQuad / kMixed<Codes>;
  IntVec dot[kPairs][kParts<Codes>][C];
  HWY_UNROLL(4)
  for (int p = 0; p < kPairs; ++p) multiply_bytes<Codes, C>(rows + p * kMixed<Codes>, x, dot[p]);
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    if constexpr (kMixed<Codes> == 1) {
      sums[c][v] = sum_in_blocks({dot[0][0][c], dot[1][0][c], dot[2][0][c], dot[3][0][c]});
    } else if constexpr (kParts<Codes> == 1) {
      sums[c][v] = sum_mixed(dot[0][0][c], dot[1][0][c]);
    } else {
      const IntVec first = sum_mixed(dot[0][0][c], dot[1][0][c]);
      const IntVec second = sum_mixed(dot[0][1][c], dot[1][1][c]);
      sums[c][0] = hn::ConcatLowerLower(IntTag(), second, first);
      sums[c][1] = hn::ConcatUpperUpper(IntTag(), second, first);
    }
  }
}
#endif

template <class Codes>
constexpr std::int64_t kQuadElements = Codes::kVectors* Codes::kAdded* Codes::kVectorElements;

// Adds their products to acc.
template <class Codes, int C>
HWY_INLINE void add_quad(const QuadOperands<C>& quad, FloatVec (&acc)[C][kTileVectors]) {
  const FloatTag d;
  IntVec sums[C][std::max(Codes::kVectors, kTileVectors)];
  const std::byte* x[C];
  for (int c = 0; c < C; ++c) x[c] = quad.x[c] + quad.quad * kQuadElements<Codes> * kColumnBytes<Codes>;
  HWY_UNROLL(4)
  for (int v = 0; v < Codes::kVectors; ++v) {
    const std::int64_t elements = v * Codes::kAdded * Codes::kVectorElements;
    const std::byte* x_at[C];
    for (int c = 0; c < C; ++c) x_at[c] = x[c] + elements * kColumnBytes<Codes>;
    const std::byte* rows[kQuad];
    for (int r = 0; r < kQuad; ++r) rows[r] = quad.rows[r] + v * Codes::kAdded * Codes::kVectorBytes;
#if HWY_ARCH_X86
    if constexpr (Codes::kByBytes) {
      sum_bytes<Codes, C>(rows, x_at, v, sums);
      continue;
    }
#endif
    if constexpr (!Codes::kByBytes) {
      IntVec dot[kQuad][C];
      multiply_words<Codes, C>(rows, v == 0, x_at, dot);
      HWY_UNROLL(4)
      for (int c = 0; c < C; ++c) sums[c][v] = sum_in_blocks({dot[0][c], dot[1][c], dot[2][c], dot[3][c]});
    }
  }
  HWY_UNROLL(4)
  for (int c = 0; c < C; ++c) {
    HWY_UNROLL(2)
    for (int count = Codes::kVectors; count > kTileVectors; count /= 2)
      for (int i = 0; i < count / 2; ++i) sums[c][i] = fold_blocks(sums[c][2 * i], sums[c][2 * i + 1]);
    HWY_UNROLL(4)
    for (int i = 0; i < kTileVectors; ++i) {
      const std::int64_t lane = quad.quad * 16 + i * kLanes;
      const auto dot = hn::Mul(hn::ConvertTo(d, sums[c][i]), hn::LoadU(d, quad.x_scales[c] + lane));
      const auto scale = hn::LoadU(d, quad.scales + lane);
      const auto bias = Codes::kLevels == Levels::e2m1 ? hn::Mul(scale, hn::Set(d, kE2m1Bias))
                                                       : hn::LoadU(d, quad.biases + lane);
      acc[c][i] = hn::MulAdd(scale, dot, acc[c][i]);
      acc[c][i] = hn::MulAdd(bias, hn::LoadU(d, quad.x_sums[c] + lane), acc[c][i]);
    }
  }
}

// The number of quads of groups that can be read in place, for all four rows.
template <class Codes>
HWY_INLINE std::int64_t quads_in_place(const MatrixFormat& format, const QuadRows& w, std::int64_t bytes) {
  std::int64_t readable = format.row_bytes;
  if constexpr (Codes::kPast > 0)
    for (const std::byte* row : w.rows)
      readable = std::min<std::int64_t>(readable, w.end - row - Codes::kPast);
  return std::max<std::int64_t>(readable, 0) / bytes;
}

// The rows from a byte on and zeros behind them, every `step` bytes.
HWY_NOINLINE inline void copy_rest(const MatrixFormat& format, const QuadRows& w, std::int64_t begin,
                                   std::byte* to, std::size_t step) {
  std::memset(to, 0, kQuad * step);
  for (const std::byte* row : w.rows) {
    std::memcpy(to, row + begin, to_size(format.row_bytes - begin));
    to += step;
  }
}

// Multiplies four rows by C tokens, computed from the packed codes: out[c][r].
template <class Codes, int C>
HWY_NOINLINE void multiply_integers(const MatrixFormat& format, const QuadRows& w, const std::byte* const* x,
                                    float* HWY_RESTRICT out) {
  static_assert(kColumnBytes<Codes> <= kMostColumnBytes);
  const FloatTag d;
  const IntegerRowLayout layout(format);
  FloatVec acc[C][kTileVectors];
  for (auto& token : acc)
    for (auto& one : token) one = hn::Zero(d);
  constexpr std::int64_t kBytes = kQuadElements<Codes> * Codes::kBits / 8;
  QuadOperands<C> operands;
  for (int r = 0; r < kQuad; ++r) operands.rows[r] = w.rows[r];
  operands.scales = w.scales;
  operands.biases = w.biases;
  for (int c = 0; c < C; ++c) {
    operands.x[c] = x[c];
    operands.x_scales[c] = reinterpret_cast<const float*>(x[c] + layout.scales_at);
    operands.x_sums[c] = reinterpret_cast<const float*>(x[c] + layout.sums_at);
  }
  const auto advance = [&]() HWY_ATTR {
    for (int r = 0; r < kQuad; ++r) operands.rows[r] += kBytes;
    if constexpr (kByOffset) {
      ++operands.quad;
    } else {
      operands.scales += 16;
      operands.biases += 16;
      for (int c = 0; c < C; ++c) {
        operands.x[c] += kQuadElements<Codes> * kColumnBytes<Codes>;
        operands.x_scales[c] += 16;
        operands.x_sums[c] += 16;
      }
    }
  };
  // Quads that are read in place, then copies of the others, by one loop: it is most of what is compiled.
  static_assert(Codes::kPast <= kBytes);
  HWY_ALIGN std::byte rest[kQuad][2 * kBytes + kReadPast];
  std::int64_t end = quads_in_place<Codes>(format, w, kBytes);
  for (std::int64_t quad = 0;; end = layout.quads) {
    for (; quad < end; ++quad) {
      fetch_rows(w.next, quad * kBytes, kBytes);
      add_quad<Codes, C>(operands, acc);
      advance();
    }
    if (end == layout.quads) break;
    copy_rest(format, w, end * kBytes, rest[0], sizeof(rest[0]));
    // One by one: what is indexed by a variable would not stay in registers.
    operands.rows[0] = rest[0];
    operands.rows[1] = rest[1];
    operands.rows[2] = rest[2];
    operands.rows[3] = rest[3];
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

template <class Codes, int... kTokens>
constexpr DirectProduct product_by_tokens(std::integer_sequence<int, kTokens...>) {
  return {arrange_integers<Codes>, {multiply_integers<Codes, kTokens + 1>...}};
}
template <class Codes>
constexpr DirectProduct kProductOf =
    product_by_tokens<Codes>(std::make_integer_sequence<int, kIntegerTokens>());

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
