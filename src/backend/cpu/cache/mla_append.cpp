#include "sluice/ops/cache/mla_append.h"

#include "backend/cpu/cache/append.h"

namespace sluice::backend::cpu {

using namespace cache;

template <>
void run(Context& context, const ops::MlaAppend& op) {
  append(context, op, op.kv_latent, op.latent_cache);
  append(context, op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::cpu
