// The arithmetic that norms share. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_NORM_INL_H_
#undef SLUICE_BACKEND_CPU_NORM_INL_H_
#else
#define SLUICE_BACKEND_CPU_NORM_INL_H_
#endif

#include <cmath>

#include "backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

// Rows handed to a thread at once: enough work to pay for waking it.
HWY_INLINE std::int64_t rows_per_task(std::size_t width) {
  return static_cast<std::int64_t>(1 + 4096 / width);
}

HWY_INLINE float sum_of_squares(const float* row, std::size_t count) {
  const FloatTag d;
  auto sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, row + i);
    sum = hn::MulAdd(x, x, sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) total += row[i] * row[i];
  return total;
}

// row *= factor, and *= weight where there is one.
HWY_INLINE void scale_row(float* row, std::size_t count, float factor, const float* weight) {
  const FloatTag d;
  const auto f = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    auto x = hn::Mul(hn::LoadU(d, row + i), f);
    if (weight != nullptr) x = hn::Mul(x, hn::LoadU(d, weight + i));
    hn::StoreU(x, d, row + i);
  }
  for (; i < count; ++i) row[i] *= weight != nullptr ? factor * weight[i] : factor;
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
