// out = a + b, element by element, for equal shapes. Threaded over elements; reads two tensors, writes one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/pointwise/add.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/pointwise/elementwise-inl.h"
#include "backend/cpu/runtime/context.h"
#include "sluice/ops/pointwise/add.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

struct Sum {
  HWY_INLINE FloatVec operator()(FloatTag, FloatVec a, FloatVec b) const { return hn::Add(a, b); }
};

void add(Context& context, const ops::Add& op) {
  apply_elementwise<Sum>(context, op.a, op.b, op.out);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::pointwise {

HWY_EXPORT(add);

}  // namespace sluice::backend::cpu::pointwise

namespace sluice::backend::cpu {

using namespace pointwise;

template <>
void run(Context& context, const ops::Add& op) {
  SLUICE_DISPATCH(context, add)(context, op);
}

}  // namespace sluice::backend::cpu
#endif
