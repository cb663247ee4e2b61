#include "sluice/ops/sample.h"

#include "backend/host_sample.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Sample& op) {
  for (std::int64_t row = 0; row < op.logits.dim(0); ++row) sample_row(op, row);
}

}  // namespace sluice::backend::reference
