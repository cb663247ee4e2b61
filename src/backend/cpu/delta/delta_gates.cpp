// g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b). Threaded over tokens. Few bytes per element:
// the cost is two exponentials and a logarithm. The relative error is below 2e-6 over the whole range.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/delta/delta_gates.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/runtime/address.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/parameter.h"
#include "backend/cpu/simd/activation-inl.h"
#include "sluice/ops/delta/delta_gates.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::delta::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

// exp(a_log) * softplus(x), where either factor alone may overflow or underflow: for very negative x softplus
// is e^x, and the exponents are added; otherwise exp(a_log) is applied in two factors.
HWY_INLINE FloatVec decay_rate(FloatTag d, FloatVec a_log, FloatVec x) {
  const auto limit = hn::Set(d, 80.0f);
  const auto far_below = hn::Lt(x, hn::Set(d, -15.0f));
  const auto softplus = hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
  const auto exponent = hn::IfThenElse(far_below, hn::Add(a_log, x), a_log);
  const auto first = hn::Min(exponent, limit);
  const auto rest = hn::Min(hn::Max(hn::Sub(exponent, limit), hn::Zero(d)), limit);
  const auto factor = hn::IfThenElse(far_below, hn::Set(d, 1.0f), softplus);
  return hn::Mul(hn::Mul(factor, hn::Exp(d, first)), hn::Exp(d, rest));
}

void delta_gates(Context& context, const ops::DeltaGates& op) {
  const FloatTag d;
  const std::size_t heads = op.a.dim(1);
  const std::size_t padded = hwy::RoundUpTo(heads, hn::Lanes(d));
  auto* a_log = reinterpret_cast<float*>(context.shared_scratch(2 * padded * sizeof(float)));
  float* dt_bias = a_log + padded;
  read_parameters(op.A_log, a_log);
  read_parameters(op.dt_bias, dt_bias);
  const std::int64_t grain = 1 + 2048 / heads;
  context.pool().parallel_for(0, op.a.dim(0), grain, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* a = reinterpret_cast<float*>(context.worker_scratch(worker, 2 * padded * sizeof(float)));
    float* b = a + padded;
    for (std::int64_t t = begin; t < end; ++t) {
      load_row(address(op.a, t), op.a.dtype, heads, a);
      load_row(address(op.b, t), op.b.dtype, heads, b);
      for (std::size_t h = 0; h < heads; h += hn::Lanes(d)) {
        const auto x = hn::Add(hn::LoadU(d, a + h), hn::LoadU(d, dt_bias + h));
        hn::StoreU(hn::Neg(decay_rate(d, hn::LoadU(d, a_log + h), x)), d, a + h);
        hn::StoreU(sigmoid(d, hn::LoadU(d, b + h)), d, b + h);
      }
      store_row(a, heads, address(op.g, t), op.g.dtype);
      store_row(b, heads, address(op.beta, t), op.beta.dtype);
    }
  });
}

}  // namespace sluice::backend::cpu::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::delta {

HWY_EXPORT(delta_gates);

}  // namespace sluice::backend::cpu::delta

namespace sluice::backend::cpu {

using namespace delta;

template <>
void run(Context& context, const ops::DeltaGates& op) {
  SLUICE_DISPATCH(context, delta_gates)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
