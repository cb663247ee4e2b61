#include "sluice/ops/cache/mla_append.h"

#include "backend/reference/cache/append.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::MlaAppend& op) {
  append(op, op.kv_latent, op.latent_cache);
  append(op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::reference
