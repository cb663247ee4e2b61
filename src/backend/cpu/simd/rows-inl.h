// Rows of F32 or BF16 activations as float vectors. Included once per instruction set by the kernels' files.
#if defined(SLUICE_BACKEND_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ROWS_INL_H_
#undef SLUICE_BACKEND_CPU_ROWS_INL_H_
#else
#define SLUICE_BACKEND_CPU_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "sluice/ops/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE FloatVec load(FloatTag d, const float* from) {
  return hn::LoadU(d, from);
}

HWY_INLINE FloatVec load(FloatTag d, const ops::BFloat16* from) {
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<std::uint16_t, FloatTag> du16;
  const auto bits = hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

HWY_INLINE void store(FloatTag d, FloatVec value, float* to) {
  hn::StoreU(value, d, to);
}

// Round to nearest, ties to even; NaN stays a quiet NaN: the same bits as ops::to_bfloat16.
HWY_INLINE void store(FloatTag, FloatVec value, ops::BFloat16* to) {
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<std::uint16_t, FloatTag> du16;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
  const hn::Rebind<std::int32_t, FloatTag> di;
  hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di, result)), du16, reinterpret_cast<std::uint16_t*>(to));
}

// Conversion of a whole row to or from float, of any length.
template <class T>
HWY_INLINE void load_row(const T* from, std::size_t count, float* HWY_RESTRICT to) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) hn::StoreU(load(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = ops::to_float(from[i]);
}

HWY_INLINE void store_scalar(float value, float* to) {
  *to = value;
}
HWY_INLINE void store_scalar(float value, ops::BFloat16* to) {
  *to = ops::to_bfloat16(value);
}

template <class T>
HWY_INLINE void store_row(const float* HWY_RESTRICT from, std::size_t count, T* to) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) store(d, hn::LoadU(d, from + i), to + i);
  for (; i < count; ++i) store_scalar(from[i], to + i);
}

HWY_INLINE void load_row(const void* from, ops::DType type, std::size_t count, float* to) {
  if (type == ops::DType::f32)
    load_row(static_cast<const float*>(from), count, to);
  else
    load_row(static_cast<const ops::BFloat16*>(from), count, to);
}

HWY_INLINE void store_row(const float* from, std::size_t count, void* to, ops::DType type) {
  if (type == ops::DType::f32)
    store_row(from, count, static_cast<float*>(to));
  else
    store_row(from, count, static_cast<ops::BFloat16*>(to));
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
