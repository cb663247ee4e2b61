#include "sluice/ops/linear/expert_matmul.h"

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::ExpertMatmul& op) {
  using namespace linear;
  LinearCall call = linear_call(op.x, op.experts, op.w.shape()[0], op.out);
  call.w[0] = matrices_of(context, op.w);
  run_linear(context, call);
}

}  // namespace sluice::backend::cuda
