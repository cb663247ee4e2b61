// The recurrent form of the delta rule. Rows of a state [Dv,Dk] are independent: row i computes
//   u = beta (v_i - e^g S_i.k);  out_i = e^g S_i.q + u k.q;  S_i = e^g S_i + u k
// so a block of rows stays in L1 over all tokens, and the state is read and written once. Each dot product
// adds the lanes of one accumulator in a fixed order: the bits do not depend on how tokens are divided into
// calls.
#if defined(SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#undef SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#else
#define SLUICE_BACKEND_CPU_DELTA_RECURRENT_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cmath>

#include "backend/cpu/delta/heads.h"
#include "backend/cpu/runtime/address.h"
#include "backend/cpu/simd/lane_sums-inl.h"
#include "sluice/ops/delta/delta_rule.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr std::size_t kRecurrentRows = 32;  // state rows per work item; Dv is a multiple of it
constexpr std::size_t kRowsAhead = 12;      // rows to prefetch during the first token

// The values of one token that all rows of a head use.
struct RecurrentStep {
  const float* k;
  const float* q;
  float key_query;  // k.q
  float decay;
  float beta;
};

HWY_INLINE float dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t count) {
  const FloatTag d;
  auto sum = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// One token for four rows: `values` holds v and is replaced by the output. The first pass computes S.k and
// S.q together, the second one writes; in between, out = e^g S.q + u k.q.
HWY_INLINE void step_four_rows(float* HWY_RESTRICT rows, std::size_t stride, std::size_t width,
                               const RecurrentStep& step, float* HWY_RESTRICT values) {
  const FloatTag d;
  float* const r0 = rows;
  float* const r1 = rows + stride;
  float* const r2 = rows + 2 * stride;
  float* const r3 = rows + 3 * stride;
  auto k0 = hn::Zero(d), k1 = k0, k2 = k0, k3 = k0, q0 = k0, q1 = k0, q2 = k0, q3 = k0;
  for (std::size_t j = 0; j < width; j += hn::Lanes(d)) {
    const auto key = hn::LoadU(d, step.k + j);
    const auto query = hn::LoadU(d, step.q + j);
    const auto s0 = hn::LoadU(d, r0 + j), s1 = hn::LoadU(d, r1 + j);
    const auto s2 = hn::LoadU(d, r2 + j), s3 = hn::LoadU(d, r3 + j);
    k0 = hn::MulAdd(s0, key, k0), q0 = hn::MulAdd(s0, query, q0);
    k1 = hn::MulAdd(s1, key, k1), q1 = hn::MulAdd(s1, query, q1);
    k2 = hn::MulAdd(s2, key, k2), q2 = hn::MulAdd(s2, query, q2);
    k3 = hn::MulAdd(s3, key, k3), q3 = hn::MulAdd(s3, query, q3);
  }
  const hn::Full128<float> d4;
  const auto decay = hn::Set(d4, step.decay);
  const auto error = hn::NegMulAdd(decay, sum_lanes(d, k0, k1, k2, k3), hn::LoadU(d4, values));
  const auto update = hn::Mul(hn::Set(d4, step.beta), error);
  const auto old = hn::Mul(decay, sum_lanes(d, q0, q1, q2, q3));
  hn::StoreU(hn::MulAdd(update, hn::Set(d4, step.key_query), old), d4, values);
  float u[4];
  hn::StoreU(update, d4, u);
  const auto u0 = hn::Set(d, u[0]), u1 = hn::Set(d, u[1]), u2 = hn::Set(d, u[2]), u3 = hn::Set(d, u[3]);
  const auto scale = hn::Set(d, step.decay);
  for (std::size_t j = 0; j < width; j += hn::Lanes(d)) {
    const auto key = hn::LoadU(d, step.k + j);
    hn::StoreU(hn::MulAdd(u0, key, hn::Mul(scale, hn::LoadU(d, r0 + j))), d, r0 + j);
    hn::StoreU(hn::MulAdd(u1, key, hn::Mul(scale, hn::LoadU(d, r1 + j))), d, r1 + j);
    hn::StoreU(hn::MulAdd(u2, key, hn::Mul(scale, hn::LoadU(d, r2 + j))), d, r2 + j);
    hn::StoreU(hn::MulAdd(u3, key, hn::Mul(scale, hn::LoadU(d, r3 + j))), d, r3 + j);
  }
}

// Prefetches four rows of a state; the rows after a block belong to the next work item.
HWY_INLINE void prefetch_rows(const float* rows, std::size_t stride, std::size_t width) {
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t j = 0; j < width; j += 16) hwy::Prefetch(rows + r * stride + j);
}

constexpr std::size_t recurrent_scratch_floats(std::size_t width) {
  return 2 * width + kRecurrentRows;
}

// kRecurrentRows rows of the state of one value head, from `first_row` on.
struct StateRows {
  const ops::View& state;
  std::int64_t head;
  std::int64_t first_row;
};

// Tokens [begin, end) for some rows of a state.
HWY_INLINE void run_recurrent(const ops::DeltaRule& op, std::int64_t begin, std::int64_t end,
                              const StateRows& of, float* scratch) {
  const auto& [state, head, first_row] = of;
  const std::size_t width = op.k.dim(2);
  const std::int64_t key_head = key_head_of(op, head);
  auto* rows = static_cast<float*>(address(state, head, first_row));
  const std::size_t stride = state.strides[1];
  float* k = scratch;
  float* q = k + width;
  float* values = q + width;
  for (std::int64_t t = begin; t < end; ++t) {
    load_row(address(op.k, t, key_head), op.k.dtype, width, k);
    load_row(address(op.q, t, key_head), op.q.dtype, width, q);
    load_row(address(op.v, t, head, first_row), op.v.dtype, kRecurrentRows, values);
    const RecurrentStep step{k, q, dot(k, q, width),
                             std::exp(*static_cast<const float*>(address(op.g, t, head))),
                             *static_cast<const float*>(address(op.beta, t, head))};
    for (std::size_t r = 0; r < kRecurrentRows; r += 4) {
      if (t == begin) prefetch_rows(rows + (r + kRowsAhead) * stride, stride, width);
      step_four_rows(rows + r * stride, stride, width, step, values + r);
    }
    store_row(values, kRecurrentRows, address(op.out, t, head, first_row), op.out.dtype);
  }
}

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
