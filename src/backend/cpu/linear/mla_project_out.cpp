#include "sluice/ops/linear/mla_project_out.h"

#include "backend/cpu/linear/linear.h"

namespace sluice::backend::cpu {

using namespace linear;

template <>
void run(Context& context, const ops::MlaProjectOut& op) {
  const std::int64_t heads = op.out.dim(1);
  const std::int64_t v = op.out.dim(2);
  Linear linear;
  linear.x = op.latent;
  linear.w = op.kv_b.present() ? Matrices(op.kv_b, heads, op.nope + v, op.nope, v) : Matrices(op.unembed_out);
  linear.out = op.out;
  run_linear(context, linear);
}

}  // namespace sluice::backend::cpu
