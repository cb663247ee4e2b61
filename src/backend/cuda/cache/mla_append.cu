// latent_cache[start+i] = kv_latent[i], rope_cache[start+i] = k_pe[i].
#include "sluice/ops/cache/mla_append.h"

#include "backend/cuda/cache/append_rows.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaAppend& op) {
  using namespace cache;
  append(context, op, op.kv_latent, op.latent_cache, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cuda
