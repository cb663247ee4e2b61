// Weighted sums of weight rows, in the order of the columns. Included once per instruction set.
#if defined(SLUICE_BACKEND_CPU_DEQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_DEQUANTIZE_INL_H_
#undef SLUICE_BACKEND_CPU_DEQUANTIZE_INL_H_
#else
#define SLUICE_BACKEND_CPU_DEQUANTIZE_INL_H_
#endif

#include "backend/cpu/linear/weight_scales-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::linear::HWY_NAMESPACE {

template <class Format, int k = 0>
HWY_INLINE void add_scaled_slots(const Format& w, FloatVec coefficient, FloatVec (&acc)[Format::kSlots]) {
  acc[k] = hn::MulAdd(coefficient, w.template slot<k>(), acc[k]);
  if constexpr (k + 1 < Format::kSlots) add_scaled_slots<Format, k + 1>(w, coefficient, acc);
}

// Stores slots in column order, without the factors of the packed codes, and adds `bias` in each lane.
template <class Format>
HWY_INLINE void store_slots_in_order(const FloatVec (&acc)[Format::kSlots], FloatVec bias,
                                     float* HWY_RESTRICT to) {
  const FloatTag d;
  HWY_ALIGN float lanes[kLanes];
  for (int k = 0; k < Format::kSlots; ++k) {
    hn::Store(hn::MulAdd(acc[k], hn::Set(d, Format::factor(k)), bias), d, lanes);
    for (std::int64_t i = 0; i < kLanes; ++i) to[Format::offset(k) + i * Format::kStride] = lanes[i];
  }
}

// Some rows of a weight. `scales` and `biases` have a row of groups every group_step floats.
struct WeightRows {
  const std::byte* values;
  std::int64_t count;
  const float* scales;
  const float* biases;
  std::int64_t group_step;
};

// The columns of one chunk of sum_n coefficients[n] * row n, in column order.
template <class Format>
HWY_NOINLINE void sum_rows_chunk(const MatrixFormat& format, const WeightRows& rows, std::int64_t chunk,
                                 const float* coefficients, float* HWY_RESTRICT to) {
  const auto [values, count, scales, biases, group_step] = rows;
  const FloatTag d;
  const GroupSpread spread(format, Format::kSlots);
  const std::int64_t group = spread.first_group(chunk);
  FloatVec acc[Format::kSlots];
  for (auto& one : acc) one = hn::Zero(d);
  auto bias = hn::Zero(d);
  for (std::int64_t n = 0; n < count; ++n) {
    auto coefficient = hn::Set(d, coefficients[n]);
    if constexpr (Format::kBiased)
      bias = hn::MulAdd(coefficient, spread(biases + n * group_step + group), bias);
    if constexpr (Format::kScaled)
      coefficient = hn::Mul(coefficient, spread(scales + n * group_step + group));
    for_each_chunk<Format>(values + n * format.row_bytes, format.row_bytes, chunk, chunk + 1,
                           [&](std::int64_t, const std::byte* at) HWY_ATTR {
                             Format w;
                             w.load(at);
                             add_scaled_slots(w, coefficient, acc);
                           });
  }
  store_slots_in_order<Format>(acc, bias, to);
}

}  // namespace sluice::backend::cpu::linear::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
