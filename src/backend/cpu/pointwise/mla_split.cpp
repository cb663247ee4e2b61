// q_full = [q_nope | q_pe] for every head, kv_pre = [kv_latent | k_pe] for every token: four copies. Threaded
// over tokens.
#include "sluice/ops/pointwise/mla_split.h"

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/copy_row.h"
#include "backend/cpu/runtime/row_walk.h"

namespace sluice::backend::cpu {

template <>
void run(Context& context, const ops::MlaSplit& op) {
  const std::int64_t heads = op.q_full.dim(1);
  const std::int64_t rank = op.kv_latent.dim(1);
  const ops::DType type = op.q_full.dtype;
  const ops::DType kv_type = op.kv_pre.dtype;
  const std::int64_t grain = 1 + 32768 / (heads * (op.nope + op.rope));
  context.pool().parallel_for(0, op.q_full.dim(0), grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin * heads; r < end * heads; ++r) {
      const void* q = row_at(op.q_full, r);
      copy_row(q, type, 0, row_at(op.q_nope, r), type, op.nope);
      copy_row(q, type, op.nope, row_at(op.q_pe, r), type, op.rope);
    }
    for (std::int64_t t = begin; t < end; ++t) {
      const void* kv = row_at(op.kv_pre, t);
      copy_row(kv, kv_type, 0, row_at(op.kv_latent, t), type, rank);
      copy_row(kv, kv_type, rank, row_at(op.k_pe, t), type, op.rope);
    }
  });
}

}  // namespace sluice::backend::cpu
