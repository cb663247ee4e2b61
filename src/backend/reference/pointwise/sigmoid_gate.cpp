#include "sluice/ops/pointwise/sigmoid_gate.h"

#include "backend/reference/pointwise/activation.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"

namespace sluice::backend::reference {

using namespace pointwise;

template <>
void run(const ops::SigmoidGate& op) {
  for_each_row(op.out.shape, [&](const RowIndex& row) {
    const ops::ConstView x = row.of(op.x);
    const ops::ConstView gate = row.of(op.gate);
    const ops::View out = row.of(op.out);
    for (std::int64_t i = 0; i < out.dim(0); ++i) set(out, get(x, i) * sigmoid(get(gate, i)), i);
  });
}

}  // namespace sluice::backend::reference
