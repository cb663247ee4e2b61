// Moving 4-bit codes of some rows of a weight into a panel. Included once per instruction set.
//
// Rows are interleaved while their codes are packed, which takes a quarter of moving 16-bit words. Each lane
// then has eight columns of a row, and masks split them into pairs of columns four apart, or into groups of
// four alternate columns for byte products.
#if defined(SLUICE_BACKEND_CPU_INTEGER_PANEL_NIBBLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_PANEL_NIBBLES_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_PANEL_NIBBLES_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_PANEL_NIBBLES_INL_H_
#endif

#include "backend/cpu/linear/integer/codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

// Whether panels of 4-bit codes consist of bytes, which are multiplied by the digits of x. With VNNI these
// take as many products as words do, but half the memory and stores.
constexpr bool kBytePanels = HWY_TARGET == HWY_AVX3_DL;

// Only for whole blocks of 32 codes.
inline bool has_nibble_panels(const MatrixFormat& format) {
  return (format.storage == Storage::affine4 || format.storage == Storage::fp4) && format.columns % 32 == 0;
}

// Reorders eight integers at a time as split_nibbles reorders the codes: 0, 4, 1, 5, 2, 6, 3, 7. For bytes,
// stores digits: the high ones of 0, 2, 4, 6, the low ones, and the same for the others.
inline void order_for_nibbles(std::int64_t columns, std::int16_t* integers) {
  alignas(16) static constexpr std::uint8_t kPairs[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                          4, 5, 12, 13, 6, 7, 14, 15};
  alignas(16) static constexpr std::uint8_t kDigits[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                           2, 6, 10, 14, 3, 7, 11, 15};
  const ShortTag d;
  const auto order = hn::LoadDup128(ByteTag(), kBytePanels ? kDigits : kPairs);
  for (std::int64_t i = 0; i < columns; i += kWords) {
    auto words = hn::LoadU(d, integers + i);
    if constexpr (kBytePanels) {
      const auto high = hn::ShiftRight<kDigitBits>(hn::Add(words, hn::Set(d, 1 << (kDigitBits - 1))));
      const auto low = hn::Sub(words, hn::ShiftLeft<kDigitBits>(high));
      words = hn::Or(hn::And(high, hn::Set(d, 0xff)), hn::ShiftLeft<8>(low));
    }
    const auto bytes = hn::TableLookupBytes(hn::BitCast(ByteTag(), words), order);
    hn::StoreU(hn::BitCast(d, bytes), d, integers + i);
  }
}

// Loads sixteen bytes of every fourth row.
template <int kCount = kBlocks>
HWY_INLINE auto load_blocks(const std::byte* const* rows, std::int64_t at) {
  const hn::FixedTag<std::uint32_t, 4 * kCount> d;
  if constexpr (kCount == 1)
    return hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(rows[0] + at));
  else
    return hn::Combine(d, load_blocks<kCount / 2>(rows + 2 * kCount, at), load_blocks<kCount / 2>(rows, at));
}

// Sixteen bytes of every fourth row, of kLanes rows in all.
using Blocks = hn::Vec<WordTag>[4];

// Splits 32 columns of kLanes rows into sixteen vectors of pairs, or eight of groups of four, stored `step`
// apart.
template <Levels kLevels>
HWY_INLINE void split_nibbles(const Blocks& rows, std::int16_t* HWY_RESTRICT to, std::int64_t step) {
  const WordTag d;
  const hn::Repartition<std::uint64_t, WordTag> d64;
  const HalfTag dh;
  const auto mask = hn::Set(d, 0x0f0f0f0fu);
  const auto low_byte = hn::Set(dh, std::uint16_t{0xff});
  const auto store = [&](hn::Vec<WordTag> codes, int eight, int half) HWY_ATTR {
    auto bytes = hn::BitCast(ByteTag(), codes);
    if constexpr (kLevels == Levels::e2m1)
      bytes = hn::TableLookupBytes(hn::LoadDup128(ByteTag(), kE2m1Bytes), bytes);
    const ShortTag ds;
    if constexpr (kBytePanels) {
      hn::Store(hn::BitCast(ds, bytes), ds, to + (2 * eight + half) * step);
    } else {
      const auto words = hn::BitCast(dh, bytes);
      hn::Store(hn::BitCast(ds, hn::And(words, low_byte)), ds, to + (4 * eight + half) * step);
      hn::Store(hn::BitCast(ds, hn::ShiftRight<8>(words)), ds, to + (4 * eight + half + 2) * step);
    }
  };
  const auto split = [&](auto eights, int i) HWY_ATTR {
    const auto codes = hn::BitCast(d, eights);
    store(hn::And(codes, mask), i, 0);
    store(hn::And(hn::ShiftRight<4>(codes), mask), i, 1);
  };
  const auto pair = [&](auto first, auto second, int i) HWY_ATTR {
    split(hn::InterleaveLower(d64, hn::BitCast(d64, first), hn::BitCast(d64, second)), i);
    split(hn::InterleaveUpper(d64, hn::BitCast(d64, first), hn::BitCast(d64, second)), i + 1);
  };
  pair(hn::InterleaveLower(d, rows[0], rows[1]), hn::InterleaveLower(d, rows[2], rows[3]), 0);
  pair(hn::InterleaveUpper(d, rows[0], rows[1]), hn::InterleaveUpper(d, rows[2], rows[3]), 2);
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr std::int64_t kWideColumns = 128;  // of a line of 64 bytes

// The same of 128 columns. Whole lines are read, as the lines of sixteen rows may be too many for the places
// in the first-level cache where powers of two put them.
template <Levels kLevels>
HWY_INLINE void split_wide_nibbles(const std::byte* const* rows, std::int64_t at,
                                   std::int16_t* HWY_RESTRICT to, std::int64_t step) {
  Blocks blocks[4];
  HWY_UNROLL(4)
  for (int r = 0; r < 4; ++r) {
    const auto line = [&](int i) HWY_ATTR { return _mm512_loadu_si512(rows[r + 4 * i] + at); };
    const __m512i even = _mm512_shuffle_i32x4(line(0), line(1), 0x88);
    const __m512i odd = _mm512_shuffle_i32x4(line(0), line(1), 0xdd);
    const __m512i next_even = _mm512_shuffle_i32x4(line(2), line(3), 0x88);
    const __m512i next_odd = _mm512_shuffle_i32x4(line(2), line(3), 0xdd);
    blocks[0][r].raw = _mm512_shuffle_i32x4(even, next_even, 0x88);
    blocks[1][r].raw = _mm512_shuffle_i32x4(odd, next_odd, 0x88);
    blocks[2][r].raw = _mm512_shuffle_i32x4(even, next_even, 0xdd);
    blocks[3][r].raw = _mm512_shuffle_i32x4(odd, next_odd, 0xdd);
  }
  HWY_UNROLL(4)
  for (int b = 0; b < 4; ++b) split_nibbles<kLevels>(blocks[b], to + b * (kBytePanels ? 8 : 16) * step, step);
}
#endif

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
