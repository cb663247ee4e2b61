// out = softmax(scale * q kT) v over the rows of the cache that a query sees.
#include "sluice/ops/attention.h"

#include "backend/cuda/attention/dense_cache.cuh"
#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/plain.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Attention& op) {
  using namespace attention;
  const bool pooled = op.seq_starts.present();
  const int row = pooled ? 1 : 0;
  AttendCall attend(op, op.q.dim(0), op.out, op.start);
  attend.group = static_cast<int>(op.q.dim(1) / op.k_cache.dim(row + 1));
  attend.window = op.window;
  attend.capacity = op.k_cache.dim(row);
  attend.pool = pooled ? op.k_cache.dim(0) : 1;
  attend.fault = context.fault();
  const MmaCall call{attend, HeadRows(op.q), DenseCache(op.k_cache, pooled), DenseCache(op.v_cache, pooled)};
  const bool decode = context.decode_class(op.q.dim(0));
  if (decode && decode_mma_supports(context, call)) return attend_decode_mma(context, call);
  if (!decode && prefill_wgmma_supports(context, call)) return attend_prefill_wgmma(context, call);
  if (!decode && prefill_mma_supports(context, call)) return attend_prefill_mma(context, call);
  run_plain(context, PlainCall<DenseCache, DenseCache>{attend, {{call.queries, {}}}, call.keys, call.values});
}

}  // namespace sluice::backend::cuda
