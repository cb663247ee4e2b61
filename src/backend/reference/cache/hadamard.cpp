#include "sluice/ops/cache/hadamard.h"

#include "backend/reference/cache/rotation.h"
#include "backend/reference/runtime/reference.h"
#include "backend/reference/runtime/rows.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::Hadamard& op) {
  for_each_row(op.x.shape, [&](const RowIndex& row) {
    std::vector<double> x = read_row(row.of(op.x));
    if (op.inverse)
      rotate_back(x, op.signs);
    else
      rotate(x, op.signs);
    write_row(x, row.of(op.out));
  });
}

}  // namespace sluice::backend::reference
