// Arithmetic shared by the norms. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_NORM_INL_H_
#undef SLUICE_BACKEND_CPU_NORM_INL_H_
#else
#define SLUICE_BACKEND_CPU_NORM_INL_H_
#endif

#include <cmath>

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/parameter.h"
#include "backend/cpu/simd/rows-inl.h"
#include "base/integer_cast.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// Rows per task of a thread: enough work to justify waking it.
HWY_INLINE std::int64_t rows_per_task(std::size_t width) {
  return static_cast<std::int64_t>(1 + 16384 / width);
}

// A norm's weight as floats: directly if it is F32, otherwise converted into the shared scratch.
HWY_INLINE const float* widen_weight(Context& context, const ops::ConstView& weight) {
  if (weight.dtype == ops::DType::f32 && aligned(weight)) return static_cast<const float*>(weight.data);
  const std::size_t count = weight.elements();
  auto* wide = reinterpret_cast<float*>(context.shared_scratch(count * sizeof(float)));
  if (weight.dtype == ops::DType::bf16 && aligned(weight))
    load_row(static_cast<const ops::BFloat16*>(weight.data), count, wide);
  else
    read_parameters(weight, wide);
  return wide;
}

template <class T>
double sum_of_squares_in_double(const T* row, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = ops::to_float(row[i]);
    sum += x * x;
  }
  return sum;
}

// Summed in F32 with four vectors; rows whose squares leave the range of F32 are summed in double.
template <class T>
HWY_INLINE double sum_of_squares(const T* row, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto x0 = load(d, row + i);
    const auto x1 = load(d, row + i + lanes);
    const auto x2 = load(d, row + i + 2 * lanes);
    const auto x3 = load(d, row + i + 3 * lanes);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
    sum2 = hn::MulAdd(x2, x2, sum2);
    sum3 = hn::MulAdd(x3, x3, sum3);
  }
  for (; i + lanes <= count; i += lanes) {
    const auto x = load(d, row + i);
    sum0 = hn::MulAdd(x, x, sum0);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < count; ++i) total += ops::to_float(row[i]) * ops::to_float(row[i]);
  const bool in_range = total > 1e-25f && total < 1e38f;
  return in_range ? total : sum_of_squares_in_double(row, count);
}

// out = x * factor, times weight if there is one; out may be x.
template <class T>
HWY_INLINE void scale_row(const T* x, std::size_t count, float factor, const float* weight, T* out) {
  const FloatTag d;
  const auto f = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    auto value = hn::Mul(load(d, x + i), f);
    if (weight != nullptr) value = hn::Mul(value, hn::LoadU(d, weight + i));
    store(d, value, out + i);
  }
  for (; i < count; ++i)
    store_scalar(ops::to_float(x[i]) * factor * (weight != nullptr ? weight[i] : 1.0f), out + i);
}

HWY_INLINE float rms_factor(double squares, std::size_t count, double eps) {
  return static_cast<float>(1 / std::sqrt(squares / to_double(count) + eps));
}

template <class T>
HWY_INLINE void rms_norm_row(const T* x, std::size_t count, double eps, const float* weight, T* out) {
  scale_row(x, count, rms_factor(sum_of_squares(x, count), count, eps), weight, out);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
