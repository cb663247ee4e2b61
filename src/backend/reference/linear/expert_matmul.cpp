#include "sluice/ops/linear/expert_matmul.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/routing/choices.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::ExpertMatmul& op) {
  for (std::int64_t e = 0; e < op.w.shape()[0]; ++e) {
    const std::vector<routing::Choice> choices = routing::choices_of(op.experts, e);
    for (std::int64_t n = 0; n < op.out.dim(2) && !choices.empty(); ++n) {
      const std::vector<double> row = weight_row(op.w[e], n);
      for (const auto& [t, j] : choices)
        set(op.out, dot(op.x.rank() == 3 ? op.x[t][j] : op.x[t], row), t, j, n);
    }
  }
}

}  // namespace sluice::backend::reference
