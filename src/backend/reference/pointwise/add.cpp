#include "sluice/ops/pointwise/add.h"

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Add& op) {
  for_each_row(op.out.shape, [&](const RowIndex& row) {
    const ops::ConstView a = row.of(op.a);
    const ops::ConstView b = row.of(op.b);
    const ops::View out = row.of(op.out);
    for (std::int64_t i = 0; i < out.dim(0); ++i) set(out, get(a, i) + get(b, i), i);
  });
}

}  // namespace sluice::backend::reference
