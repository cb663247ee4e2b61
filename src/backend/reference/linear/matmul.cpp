#include "sluice/ops/linear/matmul.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::Matmul& op) {
  for (std::int64_t n = 0; n < op.out.dim(1); ++n) {
    const std::vector<double> row = weight_row(op.w, n);
    for (std::int64_t t = 0; t < op.out.dim(0); ++t) set(op.out, dot(op.x[t], row), t, n);
  }
}

}  // namespace sluice::backend::reference
