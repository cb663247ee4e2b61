#include "sluice/ops/routing/moe_combine.h"

#include "backend/reference/pointwise/activation.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::MoeCombine& op) {
  for (std::int64_t t = 0; t < op.residual.dim(0); ++t) {
    const double gate = op.shared_gate.present() ? pointwise::sigmoid(get(op.shared_gate, t)) : 1;
    for (std::int64_t i = 0; i < op.residual.dim(1); ++i) {
      double sum = get(op.residual, t, i);
      for (std::int64_t j = 0; j < op.weights.dim(1); ++j)
        sum += get(op.weights, t, j) * get(op.expert_out, t, j, i);
      if (op.shared_out.present()) sum += gate * get(op.shared_out, t, i);
      set(op.out, sum, t, i);
    }
  }
}

}  // namespace sluice::backend::reference
