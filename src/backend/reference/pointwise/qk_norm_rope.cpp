#include "sluice/ops/pointwise/qk_norm_rope.h"

#include "backend/reference/runtime/reference.h"
#include "sluice/ops/pointwise/rms_norm.h"
#include "sluice/ops/pointwise/rope.h"

namespace sluice::backend::reference {

// Specialisations that other files define. In a unity build those may follow this file, which would be too
// late for a declaration.
template <>
void run(const ops::RmsNorm& op);
template <>
void run(const ops::Rope& op);

template <>
void run(const ops::QkNormRope& op) {
  run(ops::RmsNorm{.x = op.q, .weight = op.q_weight, .out = op.q, .eps = op.eps});
  run(ops::RmsNorm{.x = op.k, .weight = op.k_weight, .out = op.k, .eps = op.eps});
  for (const ops::View& x : {op.q, op.k})
    run(ops::Rope{.x = x, .inv_freq = op.inv_freq, .positions = op.positions, .mscale = op.mscale});
}

}  // namespace sluice::backend::reference
