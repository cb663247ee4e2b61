// Converts packed codes to codebook levels in F32. Included once per instruction set.
//
// The codes of a vector, or of eight lanes, take at most 16 bytes of the stream: these are loaded once, a
// byte shuffle moves the two bytes that contain code i to lane i, and a shift and a mask extract the code.
// Levels are looked up by permuting registers if a few tables hold them all (up to 6 bits on AVX-512, 5 on
// AVX2, 4 with 128-bit vectors), otherwise by gathers.
#if defined(SLUICE_BACKEND_CPU_LEVELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_LEVELS_INL_H_
#undef SLUICE_BACKEND_CPU_LEVELS_INL_H_
#else
#define SLUICE_BACKEND_CPU_LEVELS_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"
#include "quant/codebook.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

template <std::size_t kBits>
class LevelReader {
 public:
  LevelReader() : levels_(quant::codebook(kBits).float_levels().data()) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      alignas(64) std::uint8_t window[4 * kLanes] = {};
      alignas(64) std::uint32_t shift[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t bit = (v * kLanes + i) * kBits;
        window[4 * i] = static_cast<std::uint8_t>(bit / 8);
        window[4 * i + 1] = static_cast<std::uint8_t>(std::min<std::size_t>(bit / 8 + 1, 15));
        shift[i] = to_unsigned(bit % 8);
      }
      window_[v] = hn::Load(Bytes(), window);
      shift_[v] = hn::Load(Words(), shift);
    }
    if constexpr (kTables <= kMaxTables)
      for (std::size_t t = 0; t < kTables; ++t) tables_[t] = hn::LoadU(FloatTag(), levels_ + t * kLanes);
  }

  // The levels of a row of `width` codes, a multiple of 32. Reads nothing outside the row.
  HWY_INLINE void read(const std::uint8_t* codes, std::size_t width, float* HWY_RESTRICT to) const {
    const FloatTag d;
    std::size_t bytes = width * kBits / 8;
    std::uint8_t short_row[16] = {};
    if (bytes < 16) {
      std::memcpy(short_row, codes, bytes);
      codes = short_row;
      bytes = 16;
    }
    std::size_t i = 0;
    for (std::size_t at = 0; i < width && at + 16 <= bytes; i += kGroup, at += kStep) {
      const auto stream = hn::LoadDup128(Bytes(), codes + at);
      for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(levels(stream, window_[v], shift_[v]), d, to + i + v * kLanes);
    }
    // The last codes are in the last 16 bytes.
    const auto stream = hn::LoadDup128(Bytes(), codes + bytes - 16);
    for (; i < width; i += kGroup) {
      const auto skip = hn::Set(Bytes(), static_cast<std::uint8_t>(i * kBits / 8 - (bytes - 16)));
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto window = hn::Min(hn::Add(window_[v], skip), hn::Set(Bytes(), 15));
        hn::StoreU(levels(stream, window, shift_[v]), d, to + i + v * kLanes);
      }
    }
  }

 private:
  static constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
  // Codes read at a time: whole bytes of the stream, so at least eight.
  static constexpr std::size_t kGroup = std::max<std::size_t>(kLanes, 8);
  static constexpr std::size_t kVectors = kGroup / kLanes;
  static constexpr std::size_t kStep = kGroup * kBits / 8;  // bytes
  static constexpr std::size_t kTables = ((std::size_t{1} << kBits) + kLanes - 1) / kLanes;
  static constexpr std::size_t kMaxTables = 4;
  using Bytes = hn::Repartition<std::uint8_t, FloatTag>;
  using Words = hn::RebindToUnsigned<FloatTag>;

  HWY_INLINE FloatVec levels(hn::Vec<Bytes> stream, hn::Vec<Bytes> window, hn::Vec<Words> shift) const {
    const Words du;
    const auto spread = hn::BitCast(du, hn::TableLookupBytes(stream, window));
    const auto codes = hn::And(hn::Shr(spread, shift), hn::Set(du, (1U << kBits) - 1));
    if constexpr (kTables <= kMaxTables) {
      return select<kTables>(codes, tables_);
    } else {
      const hn::RebindToSigned<FloatTag> di;
      return hn::GatherIndex(FloatTag(), levels_, hn::BitCast(di, codes));
    }
  }

  // Selects the level among kCount tables by bisection.
  template <std::size_t kCount>
  static HWY_INLINE FloatVec select(hn::Vec<Words> codes, const FloatVec* tables) {
    const FloatTag d;
    const Words du;
    if constexpr (kCount == 1) {
      const auto lane = hn::And(codes, hn::Set(du, to_unsigned(kLanes - 1)));
      return hn::TableLookupLanes(tables[0], hn::IndicesFromVec(d, lane));
    } else {
      const auto half = hn::Set(du, to_unsigned(kCount / 2 * kLanes));
      const auto upper = hn::RebindMask(d, hn::Eq(hn::And(codes, half), half));
      return hn::IfThenElse(upper, select<kCount / 2>(codes, tables + kCount / 2),
                            select<kCount / 2>(codes, tables));
    }
  }

  const float* levels_;
  hn::Vec<Bytes> window_[kVectors];
  hn::Vec<Words> shift_[kVectors];
  FloatVec tables_[kMaxTables];
};

// Reads BF16 numbers instead of codes.
struct NumberReader {
  HWY_INLINE void read(const std::uint8_t* numbers, std::size_t width, float* HWY_RESTRICT to) const {
    load_row(reinterpret_cast<const ops::BFloat16*>(numbers), width, to);
  }
};

// Calls f with the reader of a bit width.
template <class F>
HWY_INLINE void with_level_reader(std::int64_t bits, F&& f) {
  switch (bits) {
    case 2:
      return f(LevelReader<2>());
    case 3:
      return f(LevelReader<3>());
    case 4:
      return f(LevelReader<4>());
    case 5:
      return f(LevelReader<5>());
    case 6:
      return f(LevelReader<6>());
    case 8:
      return f(LevelReader<8>());
    default:
      return f(NumberReader());
  }
}

}  // namespace sluice::backend::cpu::attention::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
