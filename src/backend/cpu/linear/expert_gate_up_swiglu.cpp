#include "sluice/ops/linear/expert_gate_up_swiglu.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

linear::Linear linear::linear_of(const ops::ExpertGateUpSwiglu& op) {
  Linear linear;
  linear.x = op.x;
  linear.x_share = op.experts.dim(1);
  linear.w = Matrices(op.gate_w);
  linear.up = Matrices(op.up_w);
  linear.experts = op.experts;
  linear.out = op.out;
  return linear;
}

template <>
void run(Context& context, const ops::ExpertGateUpSwiglu& op) {
  linear::run_linear(context, linear::linear_of(op));
}

}  // namespace sluice::backend::cpu
