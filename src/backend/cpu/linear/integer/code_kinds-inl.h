// The kinds of packed codes that products can read directly, and which one a format has. Included once per
// instruction set.
#if defined(SLUICE_BACKEND_CPU_INTEGER_CODE_KINDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_CODE_KINDS_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_CODE_KINDS_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_CODE_KINDS_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/linear/integer/codes-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr int kTileVectors = 16 / to_int(kLanes);

// How groups of kGroupSize fill vectors of kVectorElements codes, kBlockElements per block.
template <int kGroupSize, int kBlockElements>
struct GroupShape {
  static constexpr int kGroupBlocks = kGroupSize / kBlockElements;
  // A group is one or more whole vectors, or a vector holds several groups.
  static constexpr int kAdded = std::max(1, kGroupBlocks / kBlocks);  // vectors that are added up directly
  static constexpr int kFolded = kGroupBlocks / kAdded;               // blocks of a group in a vector
  // Vectors of sums for four groups. If a block has two groups, they fill one vector of AVX2, the only
  // instruction set for which this occurs.
  static constexpr int kVectors = kGroupBlocks == 0 ? 1 : kTileVectors * kFolded;
  static constexpr std::int64_t kVectorElements = kBlocks * kBlockElements;
};

// Codes of 2, 4 or 8 bits, used as stored: slot k of a vector of bytes or words consists of the codes at the
// bits from k * kBits on.
template <int kBits_, int kGroupSize, Levels kLevels_ = Levels::codes>
struct SlotCodes : GroupShape<kGroupSize, 128 / kBits_> {
  static constexpr int kBits = kBits_;
  static constexpr Levels kLevels = kLevels_;
  static constexpr bool kByBytes = kBits < 8 ? HWY_ARCH_X86 : kHasVnni;
  static constexpr int kSlots = (kByBytes ? 8 : 16) / kBits;
  static constexpr std::int64_t kVectorBytes = 4 * kLanes;
  static constexpr std::int64_t kPast = 0;  // bytes after the codes that are read
};

// Codes of any width: as many per word as two bytes contain at any bit offset.
constexpr int moved_slots(int bits) {
  return bits <= 3 ? 4 : 2;
}
template <int kBits_, int kGroupSize, Levels kLevels_ = Levels::codes>
struct MovedCodes : GroupShape<kGroupSize, 8 * moved_slots(kBits_)> {
  static constexpr int kBits = kBits_;
  static constexpr Levels kLevels = kLevels_;
  static constexpr bool kByBytes = false;
  static constexpr int kSlots = moved_slots(kBits);
  static constexpr std::int64_t kVectorBytes = kBlocks * kBits * kSlots;
  static constexpr std::int64_t kPast = kReadPast;
};

#if HWY_TARGET == HWY_AVX3_DL
// Codes of any width, moved into bytes.
template <int kBits_, int kGroupSize, Levels kLevels_ = Levels::codes>
struct ByteCodes : GroupShape<kGroupSize, 16> {
  static constexpr int kBits = kBits_;
  static constexpr Levels kLevels = kLevels_;
  static constexpr bool kByBytes = true;
  static constexpr int kSlots = 1;
  static constexpr std::int64_t kVectorBytes = 8 * kBits;
  static constexpr std::int64_t kPast = (kBits <= 4 ? 32 : 64) - kVectorBytes;
  static_assert(kPast <= kReadPast);
};
#endif

// Codes that neither bytes nor words hold in whole numbers.
template <int kBits, int kGroupSize, Levels kLevels = Levels::codes>
using AnyCodes =
#if HWY_TARGET == HWY_AVX3_DL
    ByteCodes<kBits, kGroupSize, kLevels>;
#else
    MovedCodes<kBits, kGroupSize, kLevels>;
#endif

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
