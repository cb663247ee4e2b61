// Group scales and biases of a row as floats, and their distribution over the lanes of a chunk. Included once
// per instruction set.
#if defined(SLUICE_BACKEND_CPU_WEIGHT_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_WEIGHT_SCALES_INL_H_
#undef SLUICE_BACKEND_CPU_WEIGHT_SCALES_INL_H_
#else
#define SLUICE_BACKEND_CPU_WEIGHT_SCALES_INL_H_
#endif

#include "backend/cpu/linear/weight_format-inl.h"
#include "base/integer_cast.h"
#include "quant/minifloat.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// Floats for the groups of a row: whole vectors, padded with zeros.
inline std::int64_t padded_groups(const MatrixFormat& format) {
  return round_up(format.groups(), kLanes);
}

// Vector i of the stored scales (kLanes of them) as floats.
HWY_INLINE FloatVec load_scales(const std::byte* from, ScaleType type) {
  const FloatTag d;
  const WordTag du;
  if (type == ScaleType::f32) return hn::BitCast(d, load_words(from));
  if (type == ScaleType::bf16 || type == ScaleType::f16) {
    const hn::Rebind<std::uint16_t, FloatTag> d16;
    const hn::Repartition<std::uint8_t, decltype(d16)> db;
    const auto halves = hn::BitCast(d16, hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(from)));
    if (type == ScaleType::bf16) return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, halves)));
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, FloatTag>(), halves));
  }
  const hn::Rebind<std::uint8_t, FloatTag> d8;
  const auto code = hn::PromoteTo(du, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)));
  if (type == ScaleType::e4m3) return e4m3_to_float(code);
  const auto power = hn::ShiftLeft<23>(code);
  const auto lowest = hn::IfThenElse(hn::Eq(code, hn::Zero(du)), hn::Set(du, 0x00400000u), power);
  return hn::BitCast(d, hn::IfThenElse(hn::Eq(code, hn::Set(du, 255)), hn::Set(du, 0x7fc00000u), lowest));
}

constexpr std::int64_t scale_bytes(ScaleType type) {
  return type == ScaleType::f32 ? 4 : type == ScaleType::bf16 || type == ScaleType::f16 ? 2 : 1;
}

// Reads a row of `count` scales, padded with zeros to a whole vector.
HWY_INLINE void read_scales(const std::byte* from, ScaleType type, std::int64_t count,
                            float* HWY_RESTRICT to) {
  const FloatTag d;
  const std::int64_t step = kLanes * scale_bytes(type);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes, from += step) hn::StoreU(load_scales(from, type), d, to + i);
  if (i == count) return;
  HWY_ALIGN std::byte rest[4 * kLanes] = {};
  std::memcpy(rest, from, to_size((count - i) * scale_bytes(type)));
  const auto inside = hn::FirstN(d, to_size(count - i));
  hn::StoreU(hn::IfThenElseZero(inside, load_scales(rest, type)), d, to + i);
}

// Adapts scales and biases to kE2m1Bytes: half the stored scales, and -6 times them.
HWY_INLINE void undo_levels(float* HWY_RESTRICT scales, float* HWY_RESTRICT biases, std::int64_t count) {
  const FloatTag d;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const auto scale = hn::LoadU(d, scales + i);
    hn::StoreU(hn::Mul(scale, hn::Set(d, 0.5f)), d, scales + i);
    hn::StoreU(hn::Mul(scale, hn::Set(d, -6.0f)), d, biases + i);
  }
}

// The scales and biases of one row for the formula value = code * scale + bias.
template <class Format>
HWY_INLINE void read_groups(const MatrixFormat& format, const Matrix& matrix, std::int64_t row,
                            float* HWY_RESTRICT scales, float* HWY_RESTRICT biases) {
  if constexpr (Format::kScaled)
    read_scales(matrix.scales + row * format.scale_row_bytes, format.scale_type, format.groups(), scales);
  if constexpr (std::is_same_v<Format, NibbleFloats>) {
    undo_levels(scales, biases, padded_groups(format));
  } else if constexpr (Format::kBiased) {
    read_scales(matrix.biases + row * format.bias_row_bytes, format.bias_type, format.groups(), biases);
  }
}

// The group of each lane of a chunk. Group sizes and the number of elements per lane are powers of two.
class GroupSpread {
 public:
  // A lane has `lane_elements` consecutive elements of a row.
  HWY_INLINE GroupSpread(const MatrixFormat& format, std::int64_t lane_elements) {
    while ((lane_elements << lanes_log2_) < format.group_size) ++lanes_log2_;
    HWY_ALIGN std::int32_t index[kLanes];
    for (std::int64_t i = 0; i < kLanes; ++i) index[i] = static_cast<std::int32_t>(i >> lanes_log2_);
    index_ = hn::SetTableIndices(FloatTag(), index);
  }
  HWY_INLINE std::int64_t first_group(std::int64_t chunk) const { return chunk * kLanes >> lanes_log2_; }
  // Each lane's value of its group, given the address of the value of the chunk's first group. Reads a whole
  // vector, so kLanes floats must follow the last group's.
  HWY_INLINE FloatVec operator()(const float* first) const {
    return hn::TableLookupLanes(hn::LoadU(FloatTag(), first), index_);
  }

 private:
  int lanes_log2_ = 0;  // of the number of lanes that share a group
  decltype(hn::SetTableIndices(FloatTag(), static_cast<const std::int32_t*>(nullptr))) index_;
};

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
