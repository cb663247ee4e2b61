// q = x[..,0:D], gate = x[..,D:2D] for every head: two copies. Threaded over heads of tokens.
#include "sluice/ops/pointwise/split_q_gate.h"

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/copy_row.h"
#include "backend/cpu/runtime/row_walk.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::SplitQGate& op) {
  const std::int64_t width = op.q.dim(2);
  const ops::DType type = op.x.dtype;
  context.pool().parallel_for(0, row_count(op.x.shape), 1 + 32768 / width,
                              [&](std::int64_t begin, std::int64_t end, int) {
                                for (std::int64_t r = begin; r < end; ++r) {
                                  const void* x = row_at(op.x, r);
                                  copy_row(x, type, 0, row_at(op.q, r), type, width);
                                  copy_row(x, type, width, row_at(op.gate, r), type, width);
                                }
                              });
}

}  // namespace sluice::backend::cpu
