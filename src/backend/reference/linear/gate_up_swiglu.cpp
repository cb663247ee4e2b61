#include "sluice/ops/linear/gate_up_swiglu.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/pointwise/activation.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::GateUpSwiglu& op) {
  for (std::int64_t n = 0; n < op.out.dim(1); ++n) {
    const std::vector<double> gate = weight_row(op.gate_w, n);
    const std::vector<double> up = weight_row(op.up_w, n);
    for (std::int64_t t = 0; t < op.out.dim(0); ++t)
      set(op.out, pointwise::silu(dot(op.x[t], gate)) * dot(op.x[t], up), t, n);
  }
}

}  // namespace sluice::backend::reference
