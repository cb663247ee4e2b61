// Encodes latents into rows start+i; rope_cache[start+i] = k_pe[i].
#include "sluice/ops/cache/mla_turboquant_append.h"

#include "backend/cuda/cache/append_rows.cuh"
#include "backend/cuda/cache/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaTurboquantAppend& op) {
  using namespace cache;
  const CachePlan plan(op, op.latent_codes, 0, context.fault());
  const RingCall call{DeviceSequences(op, op.kv_latent.dim(0)),
                      SequenceNumber(op.start),
                      static_cast<const unsigned char*>(op.signs.data),
                      1,
                      plan.capacity,
                      false,
                      plan.slots,
                      context.fault(),
                      plan.pages};
  append_vectors<false>(context, call,
                        RingSide(op.kv_latent, op.latent_codes, op.latent_norms, plan.pooled, op.bits,
                                 op.norm == ops::TurboquantNorm::matched));
  append(context, op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cuda
