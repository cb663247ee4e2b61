#include "sluice/ops/pointwise/rms_norm.h"

#include <cmath>

#include "backend/reference/pointwise/norm.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference {

using namespace pointwise;

template <>
void run(const ops::RmsNorm& op) {
  const std::int64_t width = op.x.shape.back();
  for_each_row(op.x.shape, [&](const RowIndex& row) {
    const ops::ConstView x = row.of(op.x);
    const ops::View out = row.of(op.out);
    const double factor = 1 / std::sqrt(sum_of_squares(x) / to_double(width) + op.eps);
    for (std::int64_t i = 0; i < width; ++i)
      set(out, get(x, i) * factor * (op.weight.present() ? get(op.weight, i) : 1), i);
  });
}

}  // namespace sluice::backend::reference
