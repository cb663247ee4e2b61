// out = softmax(scale * q kT) v over the rows of the cache that a query sees.
#include "sluice/ops/attention/attention.h"

#include "backend/cuda/attention/dense_cache.cuh"
#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/plain.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Attention& op) {
  using namespace attention;
  const CachePlan plan(op, op.k_cache, 0, context.fault());
  AttendCall attend(op, op.q.dim(0), op.out, op.start);
  attend.group = to_int(op.q.dim(1) / op.k_cache.dim(op.k_cache.rank() - 2));
  attend.window = op.window;
  attend.set_caches(plan, context.fault());
  const MmaCall call{attend, HeadRows(op.q), DenseCache(op.k_cache, plan.pooled),
                     DenseCache(op.v_cache, plan.pooled)};
  const bool decode = context.decode_class(op.q.dim(0));
  if (decode && decode_mma_supports(context, call)) return attend_decode_mma(context, call);
  if (!decode && prefill_wgmma_supports(context, call)) return attend_prefill_wgmma(context, call);
  if (!decode && prefill_mma_supports(context, call)) return attend_prefill_mma(context, call);
  run_plain(context, PlainCall<DenseCache, DenseCache>{attend, {{call.queries, {}}}, call.keys, call.values});
}

}  // namespace sluice::backend::cuda
