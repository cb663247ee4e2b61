// Softmax over all E experts, the k largest in descending order. Threaded over tokens. Experts are chosen by
// their logits, so rounding of exp cannot reorder them; the sum over all E is computed with F32 vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/routing/route_softmax.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <cmath>
#include <limits>
#include <numeric>

#include "backend/cpu/routing/largest.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/activation-inl.h"
#include "sluice/ops/routing/route_softmax.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::routing::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// One token's experts, in scratch: logits, padded with -inf to whole vectors, and indices.
struct RouteScratch {
  float* logits;
  std::int32_t* order;
  static std::size_t padded(std::size_t experts) { return (experts + 15) / 16 * 16; }
};

// exp(logit - largest); 1 if they are equal, even if both are infinite.
HWY_INLINE float mass(float logit, float largest) {
  return logit == largest ? 1.0f : std::exp(logit - largest);
}

HWY_INLINE float total_mass(const float* logits, std::size_t count, float largest) {
  if (largest == kMinusInfinity) return static_cast<float>(count);
  const FloatTag d;
  const auto top = hn::Set(d, largest);
  auto sum = hn::Zero(d);
  for (std::size_t e = 0; e < count; e += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, logits + e);
    sum = hn::Add(sum, hn::IfThenElse(hn::Eq(x, top), hn::Set(d, 1.0f), exp_of_negative(d, hn::Sub(x, top))));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void route_token(const ops::RouteSoftmax& op, std::int64_t t, const RouteScratch& scratch) {
  const std::int64_t experts = op.logits.dim(1);
  const std::size_t count = experts;
  load_row(row_at(op.logits, t), op.logits.dtype, count, scratch.logits);
  std::fill(scratch.logits + count, scratch.logits + RouteScratch::padded(count), kMinusInfinity);
  std::iota(scratch.order, scratch.order + experts, 0);
  choose_largest(scratch.logits, scratch.order, experts, op.k);

  auto* chosen = static_cast<std::int32_t*>(row_at(op.experts, t));
  auto* weights = static_cast<float*>(row_at(op.weights, t));
  const float largest = scratch.logits[scratch.order[0]];
  float chosen_mass = 0;
  for (std::int64_t j = 0; j < op.k; ++j) {
    chosen[j] = scratch.order[j];
    weights[j] = mass(scratch.logits[chosen[j]], largest);
    chosen_mass += weights[j];
  }
  const float sum = op.normalize ? chosen_mass : total_mass(scratch.logits, count, largest);
  for (std::int64_t j = 0; j < op.k; ++j) weights[j] /= sum;
}

void route_softmax(Context& context, const ops::RouteSoftmax& op) {
  const std::size_t experts = op.logits.dim(1);
  const std::size_t bytes = RouteScratch::padded(experts) * sizeof(float) + experts * sizeof(std::int32_t);
  context.pool().parallel_for(
      0, op.logits.dim(0), static_cast<std::int64_t>(1 + 2048 / experts),
      [&](std::int64_t begin, std::int64_t end, int worker) HWY_ATTR {
        auto* logits = reinterpret_cast<float*>(context.worker_scratch(worker, bytes));
        const RouteScratch scratch{logits,
                                   reinterpret_cast<std::int32_t*>(logits + RouteScratch::padded(experts))};
        for (std::int64_t t = begin; t < end; ++t) route_token(op, t, scratch);
      });
}

}  // namespace sluice::backend::cpu::routing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::routing {

HWY_EXPORT(route_softmax);

}  // namespace sluice::backend::cpu::routing

namespace sluice::backend::cpu {

using namespace routing;

template <>
void run(Context& context, const ops::RouteSoftmax& op) {
  SLUICE_DISPATCH(context, route_softmax)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
