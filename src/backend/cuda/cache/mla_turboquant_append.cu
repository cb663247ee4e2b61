// Latents are encoded into rows start+i, rope_cache[start+i] = k_pe[i].
#include "sluice/ops/mla_turboquant_append.h"

#include "backend/cuda/cache/append_rows.cuh"
#include "backend/cuda/cache/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaTurboquantAppend& op) {
  using namespace cache;
  const bool pooled = op.seq_starts.present();
  const RingCall call{DeviceSequences(op, op.kv_latent.dim(0)),
                      SequenceNumber(op.start),
                      static_cast<const unsigned char*>(op.signs.data),
                      1,
                      op.latent_codes.dim(op.latent_codes.rank() - 2),
                      false,
                      pooled ? op.latent_codes.dim(0) : 1,
                      context.fault()};
  append_vectors<false>(context, call,
                        RingSide(op.kv_latent, op.latent_codes, op.latent_norms, pooled, op.bits,
                                 op.norm == ops::TurboquantNorm::matched));
  append(context, op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cuda
