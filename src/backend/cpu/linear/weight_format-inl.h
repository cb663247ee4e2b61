// Packed weights as float vectors. Included once per instruction set.
//
// A row is divided into chunks of kSlots vectors. Lane i of slot k of a chunk is the element offset(k) + i *
// kStride of the chunk, so that unpacking needs no shuffle: a lane holds whole packed words, and a slot is
// extracted by a mask or a shift. A code that is masked but not shifted down is multiplied by a power of two;
// the other factor of the product includes factor(k), its inverse. Both are exact.
#if defined(SLUICE_BACKEND_CPU_WEIGHT_FORMAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_WEIGHT_FORMAT_INL_H_
#undef SLUICE_BACKEND_CPU_WEIGHT_FORMAT_INL_H_
#else
#define SLUICE_BACKEND_CPU_WEIGHT_FORMAT_INL_H_
#endif

#include "backend/cpu/linear/weight_matrix.h"
#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

using WordTag = hn::RebindToUnsigned<FloatTag>;
using WordVec = hn::Vec<WordTag>;
using ByteTag = hn::Repartition<std::uint8_t, FloatTag>;

constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));
constexpr float kPowers[32] = {0x1p0f,   0x1p-1f,  0x1p-2f,  0x1p-3f,  0x1p-4f,  0x1p-5f,  0x1p-6f,
                               0x1p-7f,  0x1p-8f,  0x1p-9f,  0x1p-10f, 0x1p-11f, 0x1p-12f, 0x1p-13f,
                               0x1p-14f, 0x1p-15f, 0x1p-16f, 0x1p-17f, 0x1p-18f, 0x1p-19f, 0x1p-20f,
                               0x1p-21f, 0x1p-22f, 0x1p-23f, 0x1p-24f, 0x1p-25f, 0x1p-26f, 0x1p-27f,
                               0x1p-28f, 0x1p-29f, 0x1p-30f, 0x1p-31f};

HWY_INLINE WordVec load_words(const std::byte* from) {
  return hn::BitCast(WordTag(), hn::LoadU(ByteTag(), reinterpret_cast<const std::uint8_t*>(from)));
}

HWY_INLINE FloatVec to_float(WordVec small) {
  return hn::ConvertTo(FloatTag(), hn::BitCast(hn::RebindToSigned<FloatTag>(), small));
}

// The code at bits [kShift, kShift + kBits) of each word, times 2^kShift unless it ends at bit 32.
template <int kShift, int kBits>
HWY_INLINE FloatVec field_in_place(WordVec word) {
  if constexpr (kShift + kBits == 32)
    return to_float(hn::ShiftRight<kShift>(word));
  else
    return to_float(hn::And(word, hn::Set(WordTag(), ((1u << kBits) - 1) << kShift)));
}
template <int kBits>
constexpr float field_factor(int shift) {
  return shift + kBits == 32 ? 1.0f : kPowers[shift];
}

// 2, 4 and 8 bits: codes never cross word boundaries.
template <int kBits>
struct WholeCodes {
  static constexpr bool kScaled = true;
  static constexpr bool kBiased = true;
  static constexpr int kSlots = 32 / kBits;
  static constexpr std::int64_t kStride = kSlots;
  static constexpr std::int64_t kChunkBytes = 4 * kLanes;
  static constexpr std::int64_t offset(int k) { return k; }
  static constexpr float factor(int k) { return field_factor<kBits>(k * kBits); }

  WordVec words;
  HWY_INLINE void load(const std::byte* from) { words = load_words(from); }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    return field_in_place<k * kBits, kBits>(words);
  }
};

// 3, 5 and 6 bits: a lane has kWords words, the fewest that contain a whole number of codes.
template <int kBits>
struct StraddlingCodes {
  static constexpr bool kScaled = true;
  static constexpr bool kBiased = true;
  static constexpr int kWords = kBits == 6 ? 3 : kBits;
  static constexpr int kSlots = kWords * 32 / kBits;
  static constexpr std::int64_t kStride = kSlots;
  static constexpr std::int64_t kChunkBytes = 4 * kWords * kLanes;
  static constexpr bool straddles(int k) { return k * kBits % 32 + kBits > 32; }
  static constexpr std::int64_t offset(int k) { return k; }
  static constexpr float factor(int k) { return straddles(k) ? 1.0f : field_factor<kBits>(k * kBits % 32); }

  WordVec words[kWords];
  HWY_INLINE void load(const std::byte* from) {
    HWY_ALIGN std::uint32_t copy[kWords * kLanes];
    std::memcpy(copy, from, sizeof(copy));
    const hn::RebindToSigned<FloatTag> di;
    const auto at = hn::Mul(hn::Iota(di, 0), hn::Set(di, kWords));
    for (int i = 0; i < kWords; ++i) words[i] = hn::GatherIndex(WordTag(), copy + i, at);
  }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    constexpr int kWord = k * kBits / 32;
    constexpr int kShift = k * kBits % 32;
    if constexpr (straddles(k)) {
      const auto joined =
          hn::Or(hn::ShiftRight<kShift>(words[kWord]), hn::ShiftLeft<32 - kShift>(words[kWord + 1]));
      return to_float(hn::And(joined, hn::Set(WordTag(), (1u << kBits) - 1)));
    } else {
      return field_in_place<kShift, kBits>(words[kWord]);
    }
  }
};

// 2 * value + 12 of the E2M1 codes.
alignas(16) inline constexpr std::uint8_t kE2m1Bytes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                            12, 11, 10, 9,  8,  6,  4,  0};

// E2M1: a table maps nibbles to bytes, which are then read like 8-bit codes; undo_levels() adapts scale and
// bias.
struct NibbleFloats {
  static constexpr bool kScaled = true;
  static constexpr bool kBiased = true;
  static constexpr int kSlots = 8;
  static constexpr std::int64_t kStride = kSlots;
  static constexpr std::int64_t kChunkBytes = 4 * kLanes;
  static constexpr std::int64_t offset(int k) { return k; }
  static constexpr float factor(int k) { return field_factor<8>(k / 2 * 8); }

  WordVec even, odd;  // elements 2j and 2j + 1 of each word, one per byte
  HWY_INLINE void load(const std::byte* from) {
    const auto table = hn::LoadDup128(ByteTag(), kE2m1Bytes);
    const auto low = hn::Set(WordTag(), 0x0f0f0f0fu);
    const auto words = load_words(from);
    const auto look_up = [&](WordVec nibbles) HWY_ATTR {
      return hn::BitCast(WordTag(), hn::TableLookupBytes(table, hn::BitCast(ByteTag(), nibbles)));
    };
    even = look_up(hn::And(words, low));
    odd = look_up(hn::And(hn::ShiftRight<4>(words), low));
  }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    return field_in_place<k / 2 * 8, 8>(k % 2 == 0 ? even : odd);
  }
};

// E4M3 in the low 8 bits of each word; higher bits are ignored. Used for scales.
HWY_INLINE FloatVec e4m3_to_float(WordVec code) {
  const FloatTag d;
  const WordTag du;
  const auto magnitude = hn::And(code, hn::Set(du, 0x7f));
  const auto sign = hn::And(hn::ShiftLeft<24>(code), hn::Set(du, 0x80000000u));
  // A subnormal m * 2^-9 is 2^-6 * (1 + m/8) - 2^-6.
  const auto subnormal = hn::Lt(hn::BitCast(hn::RebindToSigned<FloatTag>(), magnitude),
                                hn::Set(hn::RebindToSigned<FloatTag>(), 8));
  const auto exponent =
      hn::IfThenElse(hn::RebindMask(du, subnormal), hn::Set(du, 121u << 23), hn::Set(du, 120u << 23));
  const auto value = hn::BitCast(d, hn::Add(hn::ShiftLeft<20>(magnitude), exponent));
  const auto finite = hn::Sub(value, hn::IfThenElseZero(hn::RebindMask(d, subnormal), hn::Set(d, 0x1p-6f)));
  const auto nan = hn::Eq(magnitude, hn::Set(du, 0x7f));
  const auto bits = hn::IfThenElse(nan, hn::Set(du, 0x7fc00000u), hn::BitCast(du, finite));
  return hn::BitCast(d, hn::Or(bits, sign));
}

// E4M3 codes become F16 numbers by a shift, 2^8 times too small, including subnormal ones. A chunk has 32
// codes; a half word has elements 2i (low byte) and 2i + 1 of two vectors.
struct ByteFloats {
  static constexpr bool kScaled = true;
  static constexpr bool kBiased = false;
  static constexpr int kSlots = 32 / to_int(kLanes);
  static constexpr std::int64_t kStride = 2;
  static constexpr std::int64_t kChunkBytes = 32;
  static constexpr std::int64_t offset(int k) { return k / 2 * 2 * kLanes + k % 2; }
  static constexpr float factor(int) { return 0x1p8f; }

  using Tag = hn::CappedTag<std::int16_t, 16>;
  using Bytes = hn::Repartition<std::uint8_t, Tag>;
  static constexpr int kVectors = 16 / to_int(hn::MaxLanes(Tag()));
  static constexpr int kParts = kSlots / 2 / kVectors;  // of a vector, each a vector of floats

  hn::Vec<Tag> words[kVectors];
  HWY_INLINE void load(const std::byte* from) {
    for (int i = 0; i < kVectors; ++i)
      words[i] = hn::BitCast(
          Tag(), hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(from) + 32 / kVectors * i));
  }
  // The numbers of codes, of which none is NaN.
  template <int k>
  HWY_INLINE hn::Vec<Tag> numbers() const {
    const auto both = words[k / 2 / kParts];
    const auto sign_twice = hn::ShiftRight<1>(k % 2 == 0 ? hn::ShiftLeft<8>(both) : both);
    return hn::And(sign_twice, hn::Set(Tag(), static_cast<std::int16_t>(0xbf80)));
  }
  template <int k, class V>
  HWY_INLINE static FloatVec to_floats(V numbers) {
    const hn::Rebind<hwy::float16_t, FloatTag> d;
    const hn::Rebind<std::int16_t, FloatTag> d16;
    if constexpr (kParts == 1)
      return hn::PromoteTo(FloatTag(), hn::BitCast(d, numbers));
    else if constexpr (k / 2 % 2 == 0)
      return hn::PromoteTo(FloatTag(), hn::BitCast(d, hn::LowerHalf(d16, numbers)));
    else
      return hn::PromoteTo(FloatTag(), hn::BitCast(d, hn::UpperHalf(d16, numbers)));
  }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    const FloatTag d;
    const auto value = to_floats<k>(numbers<k>());
    // The largest code of either sign, 1.875 as an F16 number, stands for NaN. It is replaced afterwards,
    // because not all processors' F16 conversions handle NaN.
    const auto nan = hn::Gt(hn::Abs(value), hn::Set(d, 1.8f));
    return hn::Or(value, hn::IfThenElseZero(nan, hn::NaN(d)));
  }
};

// The same in fewer instructions for codes without NaN, which it detects but does not produce.
struct FiniteByteFloats : ByteFloats {
  // The maximum of all codes seen, without signs.
  using Seen = hn::Vec<Bytes>;
  HWY_INLINE void see(Seen& largest) const {
    for (const auto& codes : words)
      largest = hn::Max(largest, hn::And(hn::BitCast(Bytes(), codes), hn::Set(Bytes(), 0x7f)));
  }
  HWY_INLINE static bool all_finite(Seen largest) {
    return hn::AllFalse(Bytes(), hn::Eq(largest, hn::Set(Bytes(), 0x7f)));
  }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    return to_floats<k>(numbers<k>());
  }
};

struct DenseF32 {
  static constexpr bool kScaled = false;
  static constexpr bool kBiased = false;
  static constexpr int kSlots = 4;
  static constexpr std::int64_t kStride = 1;
  static constexpr std::int64_t kChunkBytes = 4 * kSlots * kLanes;
  static constexpr std::int64_t offset(int k) { return k * kLanes; }
  static constexpr float factor(int) { return 1; }

  const std::byte* at;
  HWY_INLINE void load(const std::byte* from) { at = from; }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    return hn::BitCast(FloatTag(), load_words(at + 4 * k * kLanes));
  }
};

// A word contains elements 2i (low half) and 2i + 1.
struct DenseBf16 {
  static constexpr bool kScaled = false;
  static constexpr bool kBiased = false;
  static constexpr int kSlots = 8;
  static constexpr std::int64_t kStride = 2;
  static constexpr std::int64_t kChunkBytes = 2 * kSlots * kLanes;
  static constexpr std::int64_t offset(int k) { return k / 2 * 2 * kLanes + k % 2; }
  static constexpr float factor(int) { return 1; }

  WordVec words[kSlots / 2];
  HWY_INLINE void load(const std::byte* from) {
    for (int i = 0; i < kSlots / 2; ++i) words[i] = load_words(from + 4 * i * kLanes);
  }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    if constexpr (k % 2 == 0)
      return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(words[k / 2]));
    else
      return hn::BitCast(FloatTag(), hn::And(words[k / 2], hn::Set(WordTag(), 0xffff0000u)));
  }
};

struct DenseF16 {
  static constexpr bool kScaled = false;
  static constexpr bool kBiased = false;
  static constexpr int kSlots = 4;
  static constexpr std::int64_t kStride = 1;
  static constexpr std::int64_t kChunkBytes = 2 * kSlots * kLanes;
  static constexpr std::int64_t offset(int k) { return k * kLanes; }
  static constexpr float factor(int) { return 1; }

  const std::byte* at;
  HWY_INLINE void load(const std::byte* from) { at = from; }
  template <int k>
  HWY_INLINE FloatVec slot() const {
    const hn::Rebind<hwy::float16_t, FloatTag> df16;
    const hn::Repartition<std::uint8_t, decltype(df16)> db;
    const auto bytes = hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(at + 2 * k * kLanes));
    return hn::PromoteTo(FloatTag(), hn::BitCast(df16, bytes));
  }
};

// Calls f with an object of the kernel type for `storage`.
template <class F>
HWY_INLINE void with_format(Storage storage, F&& f) {
  switch (storage) {
    case Storage::f32:
      return f(DenseF32());
    case Storage::bf16:
      return f(DenseBf16());
    case Storage::f16:
      return f(DenseF16());
    case Storage::affine2:
      return f(WholeCodes<2>());
    case Storage::affine3:
      return f(StraddlingCodes<3>());
    case Storage::affine4:
      return f(WholeCodes<4>());
    case Storage::affine5:
      return f(StraddlingCodes<5>());
    case Storage::affine6:
      return f(StraddlingCodes<6>());
    case Storage::affine8:
      return f(WholeCodes<8>());
    case Storage::fp4:
      return f(NibbleFloats());
    case Storage::fp8:
      return f(ByteFloats());
  }
}

template <class Format>
constexpr std::int64_t chunk_elements() {
  return Format::kSlots * kLanes;
}
template <class Format>
std::int64_t chunk_count(std::int64_t columns) {
  return (columns + chunk_elements<Format>() - 1) / chunk_elements<Format>();
}

// Calls f(chunk, address) for chunks [begin, end) of a row; if the row ends inside a chunk, the address is
// that of a copy padded with zeros.
template <class Format, class F>
HWY_INLINE void for_each_chunk(const std::byte* row, std::int64_t row_bytes, std::int64_t begin,
                               std::int64_t end, F&& f) {
  const std::int64_t whole = std::min(end, row_bytes / Format::kChunkBytes);
  for (std::int64_t c = begin; c < whole; ++c) f(c, row + c * Format::kChunkBytes);
  if (whole >= end) return;
  HWY_ALIGN std::byte rest[Format::kChunkBytes] = {};
  std::memcpy(rest, row + whole * Format::kChunkBytes, to_size(row_bytes - whole * Format::kChunkBytes));
  f(whole, rest);
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
