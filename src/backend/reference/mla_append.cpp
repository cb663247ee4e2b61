#include "sluice/ops/mla_append.h"

#include "backend/reference/append.h"
#include "backend/reference/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::MlaAppend& op) {
  append(op, op.kv_latent, op.latent_cache);
  append(op, op.k_pe, op.rope_cache);
}

}  // namespace sluice::backend::reference
