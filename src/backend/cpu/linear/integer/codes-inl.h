// Packed codes of any width as 16-bit words, in the order of the columns. Included once per instruction set.
//
// Eight codes occupy as many bytes as a code has bits, and no code spans more than two bytes, nor do two
// codes of 5 or 6 bits or four of 3. So a shuffle moves the two bytes of one or more codes into their word, a
// multiplication moves the codes to the top of it, and shifts move them down. Widths differ only in which
// bytes and by how much.
#if defined(SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#endif

#include "backend/cpu/linear/integer/product.h"
#include "backend/cpu/linear/weight_scales-inl.h"
#include "backend/cpu/simd/activation-inl.h"
#include "backend/cpu/simd/f32_tile-inl.h"
#include "base/integer_cast.h"

#include "backend/cpu/simd/target_vnni.h"
#if defined(SLUICE_AVX_VNNI)
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

using namespace linear::HWY_NAMESPACE;
using namespace simd::HWY_NAMESPACE;

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ShortTag = hn::Repartition<std::int16_t, FloatTag>;
using ShortVec = hn::Vec<ShortTag>;
using HalfTag = hn::RebindToUnsigned<ShortTag>;
using HalfVec = hn::Vec<HalfTag>;

constexpr int kBlocks = to_int(kLanes) / 4;  // 16-byte blocks per vector
constexpr std::int64_t kWords = 2 * kLanes;  // per vector
// Maximum number of bytes after its codes that unpacking a vector may read.
constexpr std::int64_t kReadPast = HWY_TARGET == HWY_AVX3_DL ? 24 : 16;

// Which bytes are moved into a word with kSlots neighbouring codes, and the factors that move the codes to
// its top. Two blocks that would be loaded separately can also be loaded at once, from so many bytes earlier
// that the first block ends where the second one begins.
template <int kBits, int kSlots, bool kFromBefore = false>
struct CodeShuffle {
  static constexpr int kBlockBytes = kBits * kSlots;
  static constexpr int kBlocksOfLoad = kBlocks * kBlockBytes <= 16 ? kBlocks : 2 * kBlockBytes <= 16 ? 2 : 1;
  static constexpr int kBefore = kBlocks == 2 && kBlocksOfLoad == 1 ? 16 - kBlockBytes : 0;
  alignas(64) std::uint8_t bytes[16 * kBlocks];
  alignas(64) std::uint16_t factors[8 * kBlocks];
  constexpr CodeShuffle() : bytes(), factors() {
    for (int i = 0; i < 8 * kBlocks; ++i) {
      const int bit = i % 8 * kBits * kSlots;
      const int behind = kFromBefore && i < 8 ? kBefore : 0;
      const int first = bit / 8 + i / 8 % kBlocksOfLoad * kBlockBytes + behind;
      bytes[2 * i] = static_cast<std::uint8_t>(first);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(first < 15 ? first + 1 : 15);
      factors[i] = static_cast<std::uint16_t>(1 << (16 - kBits * kSlots - bit % 8));
    }
  }
};

// Makes words with kSlots codes each at their top. Keeps the shuffle and the factors in registers.
template <int kBits, int kSlots>
class Mover {
 public:
  HWY_INLINE Mover() {
    bytes_ = hn::Load(ByteTag(), kShuffle.bytes);
    bytes_from_before_ = hn::Load(ByteTag(), kShuffleFromBefore.bytes);
    factors_ = hn::Load(HalfTag(), kShuffle.factors);
  }

  // kWords of them from `at` on. If `inside`, the sixteen bytes before `at` may be read.
  HWY_INLINE HalfVec operator()(const std::byte* at, bool inside = false) const {
    if (kShuffle.kBefore > 0 && inside) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(at) - kShuffle.kBefore;
      return move(hn::LoadU(ByteTag(), from), bytes_from_before_);
    }
    return move(load(at), bytes_);
  }

 private:
  static constexpr CodeShuffle<kBits, kSlots> kShuffle{};
  static constexpr CodeShuffle<kBits, kSlots, true> kShuffleFromBefore{};

  HWY_INLINE HalfVec move(hn::Vec<ByteTag> loaded, hn::Vec<ByteTag> bytes) const {
    return hn::Mul(hn::BitCast(HalfTag(), hn::TableLookupBytes(loaded, bytes)), factors_);
  }

  HWY_INLINE hn::Vec<ByteTag> load(const std::byte* at) const {
    const auto* from = reinterpret_cast<const std::uint8_t*>(at);
    constexpr int kStep = kShuffle.kBlocksOfLoad * kShuffle.kBlockBytes;
    if constexpr (kShuffle.kBlocksOfLoad == kBlocks) {
      return hn::LoadDup128(ByteTag(), from);
    } else {
      const hn::Half<ByteTag> half;
      const auto half_at = [&](const std::uint8_t* begin) HWY_ATTR {
        if constexpr (kBlocks == 2 * kShuffle.kBlocksOfLoad) {
          return hn::LoadDup128(half, begin);
        } else {
          const hn::Half<decltype(half)> quarter;
          return hn::Combine(half, hn::LoadU(quarter, begin + kStep), hn::LoadU(quarter, begin));
        }
      };
      return hn::Combine(ByteTag(), half_at(from + kBlocks / 2 * kShuffle.kBlockBytes), half_at(from));
    }
  }

  hn::Vec<ByteTag> bytes_;
  hn::Vec<ByteTag> bytes_from_before_;
  HalfVec factors_;
};

// The multiplied numbers: the codes themselves, or kE2m1Bytes of them.
enum class Levels { codes, e2m1 };

// Codes in a word of their own.
template <int kBits, Levels kLevels>
class Unpacker {
 public:
  HWY_INLINE Unpacker() {}

  // kWords codes from `at` on.
  HWY_INLINE ShortVec operator()(const std::byte* at) const {
    const auto codes = hn::ShiftRight<16 - kBits>(move_(at));
    if constexpr (kLevels == Levels::codes) return hn::BitCast(ShortTag(), codes);
    const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
    const auto levels = hn::TableLookupBytes(table, hn::BitCast(ByteTag(), codes));
    return hn::And(hn::BitCast(ShortTag(), levels), hn::Set(ShortTag(), 0xff));
  }

 private:
  Mover<kBits, 1> move_;
};

#if HWY_TARGET == HWY_AVX3_DL
template <int kBits>
struct ByteShuffle {
  alignas(64) std::uint8_t bytes[64];
  alignas(64) std::uint8_t shifts[64];
  constexpr ByteShuffle() : bytes(), shifts() {
    for (int i = 0; i < 64; ++i) {
      bytes[i] = static_cast<std::uint8_t>(i / 8 * kBits + std::min(i % 8, kBits - 1));
      shifts[i] = static_cast<std::uint8_t>(i % 8 * kBits);
    }
  }
};

// 64 codes as bytes: the bytes of eight codes are moved into 64 bits, and a shift per byte extracts its code.
// Reads whole vectors, of 32 bytes for up to 4 bits.
template <int kBits, Levels kLevels>
HWY_INLINE HalfVec unpack_bytes(const std::byte* at) {
  static constexpr ByteShuffle<kBits> kShuffle;
  // Masks that only read the codes would make the loads slower.
  __m512i all;
  if constexpr (kBits <= 4)
    all = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  else
    all = _mm512_loadu_si512(at);
  const __m512i eights = _mm512_permutexvar_epi8(_mm512_load_si512(kShuffle.bytes), all);
  const __m512i shifted = _mm512_multishift_epi64_epi8(_mm512_load_si512(kShuffle.shifts), eights);
  const __m512i codes = _mm512_and_si512(shifted, _mm512_set1_epi8((1 << kBits) - 1));
  if constexpr (kLevels == Levels::codes) return HalfVec{codes};
  const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
  return hn::BitCast(HalfTag(), hn::TableLookupBytes(table, hn::Vec<ByteTag>{codes}));
}
#endif

// sum += products of neighbours, at some position in the same block.
HWY_INLINE IntVec add_products(IntVec sum, ShortVec a, ShortVec b) {
#if defined(SLUICE_AVX_VNNI)
  return IntVec{_mm256_dpwssd_avx_epi32(sum.raw, a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX3_DL
  return IntVec{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#else
  auto rest = hn::Zero(IntTag());
  sum = hn::ReorderWidenMulAccumulate(IntTag(), a, b, sum, rest);
  return HWY_ARCH_X86 ? sum : hn::Add(sum, rest);
#endif
}

#if HWY_ARCH_X86
// The same for bytes, those of `a` unsigned: sums have 32 bits with VNNI and otherwise 16, which must not
// overflow.
#if defined(SLUICE_AVX_VNNI) || HWY_TARGET == HWY_AVX3_DL
constexpr bool kHasVnni = true;
HWY_INLINE IntVec add_byte_products(IntVec sum, HalfVec a, ShortVec b) {
#if defined(SLUICE_AVX_VNNI)
  return IntVec{_mm256_dpbusd_avx_epi32(sum.raw, a.raw, b.raw)};
#else
  return IntVec{_mm512_dpbusd_epi32(sum.raw, a.raw, b.raw)};
#endif
}
#else
constexpr bool kHasVnni = false;
HWY_INLINE ShortVec add_byte_products(ShortVec sum, HalfVec a, ShortVec b) {
#if HWY_TARGET == HWY_AVX3
  return hn::Add(sum, ShortVec{_mm512_maddubs_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(sum, ShortVec{_mm256_maddubs_epi16(a.raw, b.raw)});
#else
  return hn::Add(sum, ShortVec{_mm_maddubs_epi16(a.raw, b.raw)});
#endif
}
#endif
#else
constexpr bool kHasVnni = false;
#endif

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
