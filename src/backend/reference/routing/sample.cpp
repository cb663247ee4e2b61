#include "sluice/ops/routing/sample.h"

#include "backend/reference/runtime/reference.h"
#include "sampling/sample_row.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Sample& op) {
  for (std::int64_t row = 0; row < op.logits.dim(0); ++row) sampling::sample_row(op, row);
}

}  // namespace sluice::backend::reference
