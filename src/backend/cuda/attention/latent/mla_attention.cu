// scores = scale * (q_latent . latent + q_pe . rope); out = softmax(scores) latent.
#include "sluice/ops/attention/mla_attention.h"

#include "backend/cuda/attention/latent/joined_cache.cuh"
#include "backend/cuda/attention/latent/mla_mma.h"
#include "backend/cuda/attention/plain.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaAttention& op) {
  using namespace attention;
  using namespace attention::latent;
  const CachePlan plan(op, op.latent_cache, 0, context.fault());
  AttendCall attend(op, op.q_latent.dim(0), op.out, op.start);
  attend.group = attend.heads;
  attend.set_caches(plan, context.fault());
  const DenseCache latent(op.latent_cache, plan.pooled);
  const DenseCache rope(op.rope_cache, plan.pooled);
  const MlaCall call{attend, HeadRows(op.q_latent), HeadRows(op.q_pe), latent, rope};
  if (mla_mma_supports(context, call)) return attend_mla_mma(context, call);
  run_plain(context,
            PlainCall<JoinedCache<DenseCache>, DenseCache>{attend,
                                                           {{call.latent_queries, call.rope_queries}},
                                                           {latent, rope, call.latent_queries.width},
                                                           latent});
}

}  // namespace sluice::backend::cuda
