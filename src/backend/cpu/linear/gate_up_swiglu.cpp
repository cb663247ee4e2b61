#include "sluice/ops/linear/gate_up_swiglu.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::GateUpSwiglu& op) {
  Linear linear;
  linear.x = op.x;
  linear.w = Matrices(op.gate_w);
  linear.up = Matrices(op.up_w);
  linear.out = op.out;
  run_linear(context, linear);
}

}  // namespace sluice::backend::cpu
