#include "sluice/ops/linear/expert_gate_up_swiglu.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::ExpertGateUpSwiglu& op) {
  Linear linear;
  linear.x = op.x;
  linear.x_share = op.experts.dim(1);
  linear.w = Matrices(op.gate_w);
  linear.up = Matrices(op.up_w);
  linear.experts = op.experts;
  linear.out = op.out;
  run_linear(context, linear);
}

}  // namespace sluice::backend::cpu
