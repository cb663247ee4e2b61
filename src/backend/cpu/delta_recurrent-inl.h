// The recurrent form of the delta rule. Rows of a state [Dv,Dk] never meet: row i sees
//   u = beta (v_i - e^g S_i.k);  S_i = e^g S_i + u k;  out_i = S_i.q
// so a block of rows stays in L1 over all tokens, and memory moves the state once each way. Each dot product
// adds the lanes of one accumulator in a fixed order: the bits do not depend on how tokens are cut into
// calls.
#if defined(SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#undef SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#else
#define SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#endif

#include <cmath>

#include "backend/cpu/address.h"
#include "backend/cpu/delta_heads.h"
#include "backend/cpu/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::HWY_NAMESPACE {

constexpr std::size_t kRecurrentRows = 32;  // state rows a work item; Dv is a multiple of it

// One token on four rows of width Dk: in `values` come v, out go the outputs.
HWY_INLINE void step_four_rows(float* HWY_RESTRICT rows, std::size_t stride, std::size_t width,
                               const float* HWY_RESTRICT k, const float* HWY_RESTRICT q, float decay,
                               float beta, float* HWY_RESTRICT values) {
  const FloatTag d;
  float* const r0 = rows;
  float* const r1 = rows + stride;
  float* const r2 = rows + 2 * stride;
  float* const r3 = rows + 3 * stride;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::size_t j = 0; j < width; j += hn::Lanes(d)) {
    const auto key = hn::LoadU(d, k + j);
    s0 = hn::MulAdd(hn::LoadU(d, r0 + j), key, s0);
    s1 = hn::MulAdd(hn::LoadU(d, r1 + j), key, s1);
    s2 = hn::MulAdd(hn::LoadU(d, r2 + j), key, s2);
    s3 = hn::MulAdd(hn::LoadU(d, r3 + j), key, s3);
  }
  const hn::Full128<float> d4;
  float sums[4];
  sum_lanes(d, s0, s1, s2, s3, sums);
  const auto error = hn::NegMulAdd(hn::Set(d4, decay), hn::LoadU(d4, sums), hn::LoadU(d4, values));
  hn::StoreU(hn::Mul(hn::Set(d4, beta), error), d4, sums);
  const auto scale = hn::Set(d, decay);
  const auto u0 = hn::Set(d, sums[0]), u1 = hn::Set(d, sums[1]), u2 = hn::Set(d, sums[2]),
             u3 = hn::Set(d, sums[3]);
  s0 = s1 = s2 = s3 = hn::Zero(d);
  for (std::size_t j = 0; j < width; j += hn::Lanes(d)) {
    const auto key = hn::LoadU(d, k + j);
    const auto query = hn::LoadU(d, q + j);
    const auto update = [&](float* row, FloatVec u, FloatVec sum) HWY_ATTR {
      const auto next = hn::MulAdd(u, key, hn::Mul(scale, hn::LoadU(d, row + j)));
      hn::StoreU(next, d, row + j);
      return hn::MulAdd(next, query, sum);
    };
    s0 = update(r0, u0, s0);
    s1 = update(r1, u1, s1);
    s2 = update(r2, u2, s2);
    s3 = update(r3, u3, s3);
  }
  sum_lanes(d, s0, s1, s2, s3, values);
}

constexpr std::size_t recurrent_scratch_floats(std::size_t width) {
  return 2 * width + kRecurrentRows;
}

// Tokens [begin, end) on kRecurrentRows state rows of one value head, from `first_row` on.
HWY_INLINE void run_recurrent(const ops::DeltaRule& op, std::int64_t begin, std::int64_t end,
                              const ops::View& state, std::int64_t head, std::int64_t first_row,
                              float* scratch) {
  const auto width = static_cast<std::size_t>(op.k.dim(2));
  const std::int64_t key_head = key_head_of(op, head);
  auto* rows = static_cast<float*>(address(state, head, first_row));
  const auto stride = static_cast<std::size_t>(state.strides[1]);
  float* k = scratch;
  float* q = k + width;
  float* values = q + width;
  for (std::int64_t t = begin; t < end; ++t) {
    const float decay = std::exp(*static_cast<const float*>(address(op.g, t, head)));
    const float beta = *static_cast<const float*>(address(op.beta, t, head));
    load_row(address(op.k, t, key_head), op.k.dtype, width, k);
    load_row(address(op.q, t, key_head), op.q.dtype, width, q);
    load_row(address(op.v, t, head, first_row), op.v.dtype, kRecurrentRows, values);
    for (std::size_t r = 0; r < kRecurrentRows; r += 4)
      step_four_rows(rows + r * stride, stride, width, k, q, decay, beta, values + r);
    store_row(values, kRecurrentRows, address(op.out, t, head, first_row), op.out.dtype);
  }
}

}  // namespace sluice::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
