// x = rope(rms_norm(x) * weight) for q and for k, in place, in two steps: the second one finds the heads in
// cache.
#include "sluice/ops/pointwise/qk_norm_rope.h"

#include "backend/cpu/runtime/context.h"
#include "sluice/ops/pointwise/rms_norm.h"
#include "sluice/ops/pointwise/rope.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::QkNormRope& op) {
  run(context, ops::RmsNorm{.x = op.q, .weight = op.q_weight, .out = op.q, .eps = op.eps});
  run(context, ops::RmsNorm{.x = op.k, .weight = op.k_weight, .out = op.k, .eps = op.eps});
  for (const ops::View& x : {op.q, op.k})
    run(context, ops::Rope{.x = x, .inv_freq = op.inv_freq, .positions = op.positions, .mscale = op.mscale});
}

}  // namespace sluice::backend::cpu
