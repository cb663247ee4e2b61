#include "sluice/ops/linear/expert_gate_up_swiglu.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/pointwise/activation.h"
#include "backend/reference/routing/choices.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::ExpertGateUpSwiglu& op) {
  for (std::int64_t e = 0; e < op.gate_w.shape()[0]; ++e) {
    const std::vector<routing::Choice> choices = routing::choices_of(op.experts, e);
    for (std::int64_t n = 0; n < op.out.dim(2) && !choices.empty(); ++n) {
      const std::vector<double> gate = weight_row(op.gate_w[e], n);
      const std::vector<double> up = weight_row(op.up_w[e], n);
      for (const auto& [t, j] : choices)
        set(op.out, pointwise::silu(dot(op.x[t], gate)) * dot(op.x[t], up), t, j, n);
    }
  }
}

}  // namespace sluice::backend::reference
