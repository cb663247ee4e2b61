// sum += weight * row for rows of any activation type. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_ACCUMULATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ACCUMULATE_INL_H_
#undef SLUICE_BACKEND_CPU_ACCUMULATE_INL_H_
#else
#define SLUICE_BACKEND_CPU_ACCUMULATE_INL_H_
#endif

#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::simd::HWY_NAMESPACE {

template <class Row, class Sum>
HWY_INLINE void accumulate(const Row* row, std::size_t count, float weight, Sum* sum) {
  const FloatTag d;
  const auto w = hn::Set(d, weight);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
    store(d, hn::MulAdd(w, load(d, row + i), load(d, sum + i)), sum + i);
  for (; i < count; ++i) store_scalar(weight * ops::to_float(row[i]) + ops::to_float(sum[i]), sum + i);
}

// `row` starts at column `at` of a row of that type.
template <class Sum>
HWY_INLINE void accumulate(const void* row, ops::DType type, std::int64_t at, std::size_t count, float weight,
                           Sum* sum) {
  if (type == ops::DType::f32)
    accumulate(static_cast<const float*>(row) + at, count, weight, sum);
  else
    accumulate(static_cast<const ops::BFloat16*>(row) + at, count, weight, sum);
}

}  // namespace sluice::backend::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
