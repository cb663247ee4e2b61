// Packed codes of any width as words of sixteen bits, in the order of the columns. Included once per
// instruction set.
//
// Eight codes are as many bytes as a code has bits, and no code reaches over more than two bytes. So a
// shuffle brings a code's two bytes into its word, a multiplication moves the code to the top of it, and a
// shift moves it down. Which bytes and by how much is all that differs from width to width.
#if defined(SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_CODES_INL_H_
#endif

#include "backend/cpu/linear/weight_format-inl.h"

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
using namespace simd::HWY_NAMESPACE;

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using ShortTag = hn::Repartition<std::int16_t, FloatTag>;
using ShortVec = hn::Vec<ShortTag>;
using HalfTag = hn::RebindToUnsigned<ShortTag>;
using HalfVec = hn::Vec<HalfTag>;

constexpr int kBlocks = static_cast<int>(kLanes) / 4;  // of sixteen bytes in a vector
constexpr std::int64_t kWords = 2 * kLanes;            // of a vector
constexpr std::int64_t kReadPast = 16;  // bytes behind its codes that unpacking a vector may read at most

template <int kBits>
struct CodeShuffle {
  static constexpr bool kOneLoad = kBlocks * kBits <= 16;  // or one for each two blocks
  alignas(64) std::uint8_t bytes[16 * kBlocks];
  alignas(64) std::uint16_t factors[8 * kBlocks];
  constexpr CodeShuffle() : bytes(), factors() {
    for (int i = 0; i < 8 * kBlocks; ++i) {
      const int bit = i % 8 * kBits;
      const int first = bit / 8 + (kOneLoad ? i / 8 : i / 8 % 2) * kBits;
      bytes[2 * i] = static_cast<std::uint8_t>(first);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(first < 15 ? first + 1 : 15);
      factors[i] = static_cast<std::uint16_t>(1 << (16 - kBits - bit % 8));
    }
  }
};

// kWords codes from `at` on.
template <int kBits>
HWY_INLINE ShortVec unpack_words(const std::byte* at) {
  static constexpr CodeShuffle<kBits> kShuffle;
  const auto* from = reinterpret_cast<const std::uint8_t*>(at);
  const HalfTag d;
  const ByteTag db;
  auto bytes = hn::LoadDup128(db, from);
  if constexpr (!CodeShuffle<kBits>::kOneLoad) {
    const hn::Half<ByteTag> half;
    bytes = hn::Combine(db, hn::LoadDup128(half, from + 2 * kBits), hn::LoadDup128(half, from));
  }
  const auto pairs = hn::BitCast(d, hn::TableLookupBytes(bytes, hn::Load(db, kShuffle.bytes)));
  const auto top = hn::Mul(pairs, hn::Load(d, kShuffle.factors));
  return hn::BitCast(ShortTag(), hn::ShiftRight<16 - kBits>(top));
}

// What is multiplied: the codes themselves, or kE2m1Bytes of them.
enum class Levels { codes, e2m1 };

template <int kBits, Levels kLevels>
HWY_INLINE ShortVec unpack_levels(const std::byte* at) {
  const auto codes = unpack_words<kBits>(at);
  if constexpr (kLevels == Levels::codes) return codes;
  const ShortTag d;
  const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
  const auto looked_up = hn::TableLookupBytes(table, hn::BitCast(ByteTag(), codes));
  return hn::And(hn::BitCast(d, looked_up), hn::Set(d, 0xff));
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

}  // namespace sluice::backend::cpu::linear::integer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
