#include "sluice/ops/pointwise/mla_split.h"

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::MlaSplit& op) {
  const std::int64_t rank = op.kv_latent.dim(1);
  for (std::int64_t t = 0; t < op.q_full.dim(0); ++t) {
    for (std::int64_t h = 0; h < op.q_full.dim(1); ++h) {
      for (std::int64_t i = 0; i < op.nope; ++i) set(op.q_nope, get(op.q_full, t, h, i), t, h, i);
      for (std::int64_t i = 0; i < op.rope; ++i) set(op.q_pe, get(op.q_full, t, h, op.nope + i), t, h, i);
    }
    for (std::int64_t i = 0; i < rank; ++i) set(op.kv_latent, get(op.kv_pre, t, i), t, i);
    for (std::int64_t i = 0; i < op.rope; ++i) set(op.k_pe, get(op.kv_pre, t, rank + i), t, i);
  }
}

}  // namespace sluice::backend::reference
