#include "sluice/ops/linear/matmul.h"

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Matmul& op) {
  using namespace linear;
  LinearCall call = linear_call(op.x, op.out);
  call.w[0] = matrices_of(op.w);
  run_linear(context, call);
}

}  // namespace sluice::backend::cuda
