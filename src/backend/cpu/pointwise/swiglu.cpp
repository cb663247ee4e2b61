// out = silu(gate) * up, element by element, for equal shapes. Threaded over elements; reads two tensors,
// writes one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/swiglu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/pointwise/elementwise-inl.h"
#include "backend/cpu/runtime/context.h"
#include "backend/cpu/simd/activation-inl.h"
#include "sluice/ops/pointwise/swiglu.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

struct SiluTimes {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec gate, FloatVec up) const {
    return hn::Mul(silu(d, gate), up);
  }
};

void swiglu(Context& context, const ops::Swiglu& op) {
  apply_elementwise<SiluTimes>(context, op.gate, op.up, op.out);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(swiglu);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::Swiglu& op) {
  SLUICE_DISPATCH(context, swiglu)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
