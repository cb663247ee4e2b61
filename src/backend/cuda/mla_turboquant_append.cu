// Latents are encoded into rows start+i, rope_cache[start+i] = k_pe[i].
#include "sluice/ops/mla_turboquant_append.h"

#include "backend/cuda/append_rows.cuh"
#include "backend/cuda/encode_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaTurboquantAppend& op) {
  encode_rows<false>(context, op, op.kv_latent, op.latent_codes, op.latent_norms, op.bits, false);
  append(context, op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cuda
