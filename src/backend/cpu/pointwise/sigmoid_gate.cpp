// out = x * sigmoid(gate), element by element, for equal shapes. Threaded over elements; reads two tensors,
// writes one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/sigmoid_gate.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/pointwise/elementwise-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/simd/activation-inl.h"
#include "sluice/ops/pointwise/sigmoid_gate.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

struct TimesSigmoid {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec x, FloatVec gate) const {
    return hn::Mul(x, sigmoid(d, gate));
  }
};

void sigmoid_gate(Context& context, const ops::SigmoidGate& op) {
  apply_elementwise<TimesSigmoid>(context, op.x, op.gate, op.out);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(sigmoid_gate);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::SigmoidGate& op) {
  SLUICE_DISPATCH(context, sigmoid_gate)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
