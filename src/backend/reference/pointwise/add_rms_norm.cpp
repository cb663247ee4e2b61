#include "sluice/ops/pointwise/add_rms_norm.h"

#include <cmath>

#include "backend/reference/pointwise/norm.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference {

using namespace pointwise;

template <>
void run(const ops::AddRmsNorm& op) {
  const std::int64_t width = op.residual.dim(1);
  for (std::int64_t t = 0; t < op.residual.dim(0); ++t) {
    const ops::View residual = op.residual[t];
    for (std::int64_t i = 0; i < width; ++i) set(residual, get(residual, i) + get(op.delta, t, i), i);
    const double factor = 1 / std::sqrt(sum_of_squares(residual) / to_double(width) + op.eps);
    for (std::int64_t i = 0; i < width; ++i) set(op.out, get(residual, i) * factor * get(op.weight, i), t, i);
  }
}

}  // namespace sluice::backend::reference
