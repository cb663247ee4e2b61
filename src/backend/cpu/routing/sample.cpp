// The next token of each row, threaded over rows. Sorting the candidates dominates, which the standard
// library does.
#include "sluice/ops/routing/sample.h"

#include "backend/cpu/runtime/context.h"
#include "sampling/sample_row.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::Sample& op) {
  context.pool().parallel_for(0, op.logits.dim(0), 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) sampling::sample_row(op, row);
  });
}

}  // namespace sluice::backend::cpu
