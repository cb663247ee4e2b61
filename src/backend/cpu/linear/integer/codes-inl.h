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

#include "backend/cpu/linear/integer/product.h"
#include "backend/cpu/linear/weight_scales-inl.h"
#include "backend/cpu/simd/activation-inl.h"
#include "backend/cpu/simd/f32_tile-inl.h"
#include "base/integer_cast.h"

#if HWY_TARGET == HWY_AVX3_DL && HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH < 4
// These versions of Highway ask for the instructions of this target without naming them all.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR \
  HWY_TARGET_STR_AVX3  \
  ",avx512vnni,vpclmulqdq,avx512vbmi,avx512vbmi2,vaes,avxvnni,avx512bitalg,avx512vpopcntdq"
#endif
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

constexpr int kBlocks = to_int(kLanes) / 4;  // of sixteen bytes in a vector
constexpr std::int64_t kWords = 2 * kLanes;  // of a vector
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

// What is multiplied: the codes themselves, or kE2m1Bytes of them.
enum class Levels { codes, e2m1 };

// Holds in registers what unpacking takes.
template <int kBits, Levels kLevels>
class Unpacker {
 public:
  HWY_INLINE Unpacker() {
    static constexpr CodeShuffle<kBits> kShuffle;
    bytes_ = hn::Load(ByteTag(), kShuffle.bytes);
    factors_ = hn::Load(HalfTag(), kShuffle.factors);
  }

  // kWords codes from `at` on.
  HWY_INLINE ShortVec operator()(const std::byte* at) const {
    const auto pairs = hn::BitCast(HalfTag(), hn::TableLookupBytes(load(at), bytes_));
    const auto codes = hn::ShiftRight<16 - kBits>(hn::Mul(pairs, factors_));
    if constexpr (kLevels == Levels::codes) return hn::BitCast(ShortTag(), codes);
    const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
    const auto levels = hn::TableLookupBytes(table, hn::BitCast(ByteTag(), codes));
    return hn::And(hn::BitCast(ShortTag(), levels), hn::Set(ShortTag(), 0xff));
  }

 private:
  HWY_INLINE hn::Vec<ByteTag> load(const std::byte* at) const {
    const auto* from = reinterpret_cast<const std::uint8_t*>(at);
    if constexpr (CodeShuffle<kBits>::kOneLoad) {
      return hn::LoadDup128(ByteTag(), from);
    } else {
      const hn::Half<ByteTag> half;
      return hn::Combine(ByteTag(), hn::LoadDup128(half, from + 2 * kBits), hn::LoadDup128(half, from));
    }
  }

  hn::Vec<ByteTag> bytes_;
  HalfVec factors_;
};

// sum += products of neighbours, somewhere in the same block.
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
// The same of bytes, those of `a` unsigned: in 32 bits with VNNI, otherwise in sixteen, which must do.
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
