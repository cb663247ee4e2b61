#include "sluice/ops/linear/embed.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::Embed& op) {
  for (std::int64_t t = 0; t < op.ids.dim(0); ++t) {
    const std::vector<double> row = weight_row(op.table, get_id(op.ids, t));
    for (std::int64_t i = 0; i < op.out.dim(1); ++i) set(op.out, row[i], t, i);
  }
}

}  // namespace sluice::backend::reference
