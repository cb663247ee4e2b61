// The integer products of four rows of a weight with a few rows of x, straight from the packed codes, as the
// driver sees them. Included once per instruction set. Their kernel (tile-inl.h) is compiled for every kind
// of codes, which takes long: direct_stored.cpp and direct_moved.cpp have one half each.
#if defined(SLUICE_BACKEND_CPU_INTEGER_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_INTEGER_DIRECT_INL_H_
#undef SLUICE_BACKEND_CPU_INTEGER_DIRECT_INL_H_
#else
#define SLUICE_BACKEND_CPU_INTEGER_DIRECT_INL_H_
#endif

#include "backend/cpu/linear/integer/quad_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET {

constexpr int kIntegerTokens = kLanes >= 16 ? 4 : 2;  // multiplied together
// Bytes of a row of x for a column at most.
constexpr std::int64_t kMostColumnBytes = HWY_ARCH_X86 && HWY_TARGET != HWY_AVX3_DL ? 4 : 2;

// A row of x: for each of the weight's vectors the integers in the order of its slots, or the high digits in
// the order of its slots and then the low ones, with those for the first mixture of two rows first; then for
// each group its scale four times, then for each group its sum four times. Groups that fill up a quad are
// zeros.
struct IntegerRowLayout {
  std::int64_t quads = 0;
  std::int64_t scales_at = 0;  // in bytes
  std::int64_t sums_at = 0;
  std::int64_t bytes = 0;
  explicit IntegerRowLayout(const MatrixFormat& format)
      : quads((format.groups() + kQuad - 1) / kQuad),
        scales_at(quads * kQuad * format.group_size * kMostColumnBytes),
        sums_at(scales_at + quads * 16 * 4),
        bytes(round_up(sums_at + quads * 16 * 4, 64)) {}
};

// Four rows of a weight, the rows to prefetch meanwhile, and the end of readable memory.
struct QuadRows {
  const std::byte* rows[kQuad];
  const std::byte* next[kQuad];
  const std::byte* end;
  const float* scales;  // [group][row], padded with zeros to whole quads
  const float* biases;
};

// The product with one kind of codes.
struct DirectProduct {
  // Some integers of x, whole quads of groups, as the codes lie.
  void (*arrange)(const std::int16_t* q, std::int64_t count, std::byte* to);
  // By the number of tokens less one: out[token][row].
  void (*multiply[kIntegerTokens])(const MatrixFormat& format, const QuadRows& w, const std::byte* const* x,
                                   float* out);
};

// Those with codes that are read from where they lie, and with codes that are moved into bytes or words
// first.
const DirectProduct& stored_product(const MatrixFormat& format);
const DirectProduct& moved_product(const MatrixFormat& format);

inline const DirectProduct& direct_product(const MatrixFormat& format) {
  bool stored = format.storage == Storage::affine4 || format.storage == Storage::affine8;
  if (format.storage == Storage::affine2) stored = HWY_ARCH_X86 && format.group_size > 32;
  if (format.storage == Storage::fp4) stored = HWY_TARGET == HWY_AVX2 || format.group_size == 32;
  return stored ? stored_product(format) : moved_product(format);
}

}  // namespace sluice::backend::cpu::linear::integer::SLUICE_INTEGER_TARGET
HWY_AFTER_NAMESPACE();

#endif
