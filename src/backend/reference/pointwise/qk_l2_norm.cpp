#include "sluice/ops/pointwise/qk_l2_norm.h"

#include <cmath>

#include "backend/reference/pointwise/norm.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"

namespace sluice::backend::reference::pointwise {

namespace {

void normalize(const ops::View& x, double eps, double scale) {
  for_each_row(x.shape, [&](const RowIndex& index) {
    const ops::View row = index.of(x);
    const double factor = scale / std::sqrt(sum_of_squares(row) + eps);
    for (std::int64_t i = 0; i < row.dim(0); ++i) set(row, get(row, i) * factor, i);
  });
}

}  // namespace

}  // namespace sluice::backend::reference::pointwise

namespace sluice::backend::reference {

using namespace pointwise;

template <>
void run(const ops::QkL2Norm& op) {
  normalize(op.q, op.eps, op.q_scale);
  normalize(op.k, op.eps, op.k_scale);
}

}  // namespace sluice::backend::reference
