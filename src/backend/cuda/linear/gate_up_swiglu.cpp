#include "sluice/ops/linear/gate_up_swiglu.h"

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::GateUpSwiglu& op) {
  using namespace linear;
  LinearCall call = linear_call(op.x, op.out);
  call.w[0] = matrices_of(op.gate_w);
  call.w[1] = matrices_of(op.up_w);
  call.operands = 2;
  run_linear(context, call);
}

}  // namespace sluice::backend::cuda
