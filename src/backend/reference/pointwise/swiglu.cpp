#include "sluice/ops/pointwise/swiglu.h"

#include "backend/reference/pointwise/activation.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"

namespace sluice::backend::reference {

using namespace pointwise;

template <>
void run(const ops::Swiglu& op) {
  for_each_row(op.out.shape, [&](const RowIndex& row) {
    const ops::ConstView gate = row.of(op.gate);
    const ops::ConstView up = row.of(op.up);
    const ops::View out = row.of(op.out);
    for (std::int64_t i = 0; i < out.dim(0); ++i) set(out, silu(get(gate, i)) * get(up, i), i);
  });
}

}  // namespace sluice::backend::reference
