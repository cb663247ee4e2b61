#include "sluice/ops/linear/mla_project_out.h"

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaProjectOut& op) {
  using namespace linear;
  LinearCall call = linear_call(op.latent, op.out);
  call.w[0] =
      op.kv_b.present() ? head_rows(op.kv_b, op.nope + op.out.dim(2), op.nope) : matrices_of(op.unembed_out);
  run_linear(context, call);
}

}  // namespace sluice::backend::cuda
