#include "sluice/ops/pointwise/split_q_gate.h"

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::SplitQGate& op) {
  const std::int64_t width = op.q.dim(2);
  for (std::int64_t t = 0; t < op.x.dim(0); ++t)
    for (std::int64_t h = 0; h < op.x.dim(1); ++h)
      for (std::int64_t i = 0; i < width; ++i) {
        set(op.q, get(op.x, t, h, i), t, h, i);
        set(op.gate, get(op.x, t, h, width + i), t, h, i);
      }
}

}  // namespace sluice::backend::reference
