#include "sluice/ops/linear/gate_up_swiglu.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

linear::Linear linear::linear_of(const ops::GateUpSwiglu& op) {
  Linear linear;
  linear.x = op.x;
  linear.w = Matrices(op.gate_w);
  linear.up = Matrices(op.up_w);
  linear.out = op.out;
  return linear;
}

template <>
void run(Context& context, const ops::GateUpSwiglu& op) {
  linear::run_linear(context, linear::linear_of(op));
}

}  // namespace sluice::backend::cpu
