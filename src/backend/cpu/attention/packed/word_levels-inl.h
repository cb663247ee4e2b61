// Converts packed codes to codebook levels as 14-bit integers. Included once per instruction set.
//
// A chunk of codes becomes vectors of words in the order that costs least; its counterpart in a product is
// stored in the same order. AVX-512 looks up words: codes at the lowest bits of their words need no mask,
// because the table is repeated for all values of the bits above. Elsewhere the two bytes of a level are
// looked up separately, sixteen entries at a time.
#if defined(SLUICE_BACKEND_CPU_WORD_LEVELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_WORD_LEVELS_INL_H_
#undef SLUICE_BACKEND_CPU_WORD_LEVELS_INL_H_
#else
#define SLUICE_BACKEND_CPU_WORD_LEVELS_INL_H_
#endif

#include "backend/cpu/attention/packed/word_levels.h"
#include "backend/cpu/simd/rows-inl.h"
#include "backend/cpu/simd/target_vnni.h"
#include "base/integer_cast.h"

#if HWY_ARCH_X86

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

using ShortTag = hn::Repartition<std::int16_t, FloatTag>;
using ShortVec = hn::Vec<ShortTag>;
using HalfTag = hn::RebindToUnsigned<ShortTag>;
using HalfVec = hn::Vec<HalfTag>;
using ByteTag = hn::Repartition<std::uint8_t, FloatTag>;
using ByteVec = hn::Vec<ByteTag>;

constexpr std::size_t kWords = hn::MaxLanes(ShortTag());  // per vector

#if HWY_TARGET <= HWY_AVX3

// Looks up the level of the code at the lowest bits of each word.
template <std::size_t kBits>
class LevelTable {
 public:
  HWY_INLINE LevelTable() {
    const std::int16_t* levels = word_levels(kBits).words;
    for (std::size_t t = 0; t < kTables; ++t) tables_[t] = hn::LoadU(ShortTag(), levels + t * kWords);
  }
  HWY_INLINE ShortVec operator()(HalfVec codes) const {
    if constexpr (kTables == 1) {
      return ShortVec{_mm512_permutexvar_epi16(codes.raw, tables_[0].raw)};
    } else if constexpr (kTables == 2) {
      return two(codes.raw, 0);
    } else {
      const auto half = [&](int t) HWY_ATTR {
        const __mmask32 upper = _mm512_test_epi16_mask(codes.raw, _mm512_set1_epi16(64));
        return _mm512_mask_blend_epi16(upper, two(codes.raw, t).raw, two(codes.raw, t + 2).raw);
      };
      const __mmask32 upper = _mm512_test_epi16_mask(codes.raw, _mm512_set1_epi16(128));
      return ShortVec{_mm512_mask_blend_epi16(upper, half(0), half(4))};
    }
  }

 private:
  static constexpr std::size_t kTables = kBits <= 5 ? 1 : (std::size_t{1} << kBits) / kWords;
  HWY_INLINE ShortVec two(__m512i codes, int t) const {
    return ShortVec{_mm512_permutex2var_epi16(tables_[t].raw, codes, tables_[t + 1].raw)};
  }
  ShortVec tables_[kTables];
};

// For code widths that divide a word: slot k of all words, then slot k + 1.
template <std::size_t kBits_>
class SlotLevels {
 public:
  static constexpr std::size_t kBits = kBits_;
  static constexpr std::size_t kSlots = 16 / kBits;
  static constexpr std::size_t kChunk = kSlots * kWords;
  static constexpr std::size_t coordinate(std::size_t at) { return at % kWords * kSlots + at / kWords; }

  HWY_INLINE SlotLevels() {}
  HWY_INLINE void read(const std::uint8_t* codes, ShortVec (&to)[kSlots]) const {
    const auto words = hn::BitCast(HalfTag(), hn::LoadU(ByteTag(), codes));
    HWY_UNROLL(8)
    for (std::size_t k = 0; k < kSlots; ++k)
      to[k] = table_(HalfVec{_mm512_srli_epi16(words.raw, static_cast<unsigned>(k * kBits))});
  }

 private:
  LevelTable<kBits> table_;
};

#if HWY_TARGET == HWY_AVX3_DL
template <std::size_t kBits>
struct WordWindows {
  alignas(64) std::uint8_t bytes[2 * kWords];
  alignas(64) std::uint16_t shifts[kWords];
  constexpr WordWindows() : bytes(), shifts() {
    for (std::size_t i = 0; i < kWords; ++i) {
      bytes[2 * i] = static_cast<std::uint8_t>(i * kBits / 8);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(i * kBits / 8 + 1);
      shifts[i] = static_cast<std::uint16_t>(i * kBits % 8);
    }
  }
};

// For any code width: each word gets the two bytes that contain its code.
template <std::size_t kBits_>
class StraddlingLevels {
 public:
  static constexpr std::size_t kBits = kBits_;
  static constexpr std::size_t kChunk = kWords;
  static constexpr std::size_t coordinate(std::size_t at) { return at; }

  HWY_INLINE StraddlingLevels() {}
  HWY_INLINE void read(const std::uint8_t* codes, ShortVec (&to)[1]) const {
    constexpr auto kRead = static_cast<__mmask32>((std::uint64_t{1} << (kChunk * kBits / 8)) - 1);
    const __m512i all = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(kRead, codes));
    const __m512i spread = _mm512_permutexvar_epi8(_mm512_load_si512(kWindows.bytes), all);
    to[0] = table_(HalfVec{_mm512_srlv_epi16(spread, _mm512_load_si512(kWindows.shifts))});
  }

 private:
  static constexpr WordWindows<kBits> kWindows{};
  LevelTable<kBits> table_;
};
#endif

#else

// For code widths that divide a byte: slot k of all bytes, then slot k + 1.
template <std::size_t kBits_>
class SlotLevels {
 public:
  static constexpr std::size_t kBits = kBits_;
  static constexpr std::size_t kSlots = 8 / kBits;
  static constexpr std::size_t kChunk = 2 * kSlots * kWords;
  static constexpr std::size_t coordinate(std::size_t at) {
    // The lower halves of all 16-byte blocks, then the upper halves.
    const std::size_t word = at % (2 * kWords);
    const std::size_t byte = word % kWords / 8 * 16 + word / kWords * 8 + word % 8;
    return byte * kSlots + at / (2 * kWords);
  }

  HWY_INLINE SlotLevels() : levels_(word_levels(kBits)) {
    low_ = hn::LoadDup128(ByteTag(), levels_.low);
    high_ = hn::LoadDup128(ByteTag(), levels_.high);
  }
  HWY_INLINE void read(const std::uint8_t* codes, ShortVec (&to)[2 * kSlots]) const {
    const auto bytes = hn::LoadU(ByteTag(), codes);
    read_slot<0>(bytes, to);
  }

 private:
  static constexpr std::size_t kLevels = std::size_t{1} << kBits;
  static constexpr std::size_t kTables = kLevels <= 16 ? 1 : kLevels / 32;  // for the positive half

  template <std::size_t k>
  HWY_INLINE void read_slot(ByteVec bytes, ShortVec (&to)[2 * kSlots]) const {
    const auto shifted =
        hn::BitCast(ByteTag(), hn::ShiftRight<static_cast<int>(k * kBits)>(hn::BitCast(HalfTag(), bytes)));
    if constexpr (kBits <= 4) {
      const auto codes = hn::And(shifted, hn::Set(ByteTag(), static_cast<std::uint8_t>(kLevels - 1)));
      const auto low = hn::TableLookupBytes(low_, codes);
      const auto high = hn::TableLookupBytes(high_, codes);
      to[2 * k] = hn::BitCast(ShortTag(), hn::InterleaveLower(ByteTag(), low, high));
      to[2 * k + 1] = hn::BitCast(ShortTag(), hn::InterleaveUpper(ByteTag(), low, high));
    } else {
      // The codebook is odd: its lower half mirrors the upper one.
      const hn::RebindToSigned<ByteTag> signed_bytes;
      const auto negative = hn::BitCast(
          ByteTag(), hn::VecFromMask(signed_bytes,
                                     hn::Lt(hn::Set(signed_bytes, -1), hn::BitCast(signed_bytes, shifted))));
      const auto index = hn::And(hn::Xor(shifted, negative), hn::Set(ByteTag(), 0x7f));
      const auto low = among<kTables>(index, levels_.low + kLevels / 2);
      const auto high = among<kTables>(index, levels_.high + kLevels / 2);
      const auto sign_low = hn::BitCast(ShortTag(), hn::InterleaveLower(ByteTag(), negative, negative));
      const auto sign_high = hn::BitCast(ShortTag(), hn::InterleaveUpper(ByteTag(), negative, negative));
      const auto first = hn::BitCast(ShortTag(), hn::InterleaveLower(ByteTag(), low, high));
      const auto second = hn::BitCast(ShortTag(), hn::InterleaveUpper(ByteTag(), low, high));
      to[2 * k] = hn::Sub(hn::Xor(first, sign_low), sign_low);
      to[2 * k + 1] = hn::Sub(hn::Xor(second, sign_high), sign_high);
    }
    if constexpr (k + 1 < kSlots) read_slot<k + 1>(bytes, to);
  }

  // Looks up an entry in kCount tables of sixteen; the tables start at the index with no higher bits.
  template <std::size_t kCount>
  static HWY_INLINE ByteVec among(ByteVec index, const std::uint8_t* tables) {
    if constexpr (kCount == 1) {
      return hn::TableLookupBytes(hn::LoadDup128(ByteTag(), tables),
                                  hn::And(index, hn::Set(ByteTag(), 0x0f)));
    } else {
      const auto half = hn::Set(ByteTag(), static_cast<std::uint8_t>(kCount / 2 * 16));
      const auto upper = hn::Eq(hn::And(index, half), half);
      return hn::IfThenElse(upper, among<kCount / 2>(index, tables + kCount / 2 * 16),
                            among<kCount / 2>(index, tables));
    }
  }

  const WordLevels& levels_;
  ByteVec low_;  // the first sixteen entries
  ByteVec high_;
};

#endif

// Calls f with the reader for a bit width that knows_words() accepts.
template <class F>
HWY_INLINE void with_word_reader(std::int64_t bits, F&& f) {
  switch (bits) {
    case 2:
      return f(SlotLevels<2>());
#if HWY_TARGET == HWY_AVX3_DL
    case 3:
      return f(StraddlingLevels<3>());
    case 5:
      return f(StraddlingLevels<5>());
    case 6:
      return f(StraddlingLevels<6>());
#endif
    case 8:
      return f(SlotLevels<8>());
    default:
      return f(SlotLevels<4>());
  }
}

}  // namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86

#endif
