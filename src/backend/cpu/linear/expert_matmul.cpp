#include "sluice/ops/linear/expert_matmul.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

linear::Linear linear::linear_of(const ops::ExpertMatmul& op) {
  Linear linear;
  linear.x = op.x;
  linear.x_share = op.x.rank() == 3 ? 1 : op.experts.dim(1);
  linear.w = Matrices(op.w);
  linear.experts = op.experts;
  linear.out = op.out;
  return linear;
}

template <>
void run(Context& context, const ops::ExpertMatmul& op) {
  linear::run_linear(context, linear::linear_of(op));
}

}  // namespace sluice::backend::cpu
