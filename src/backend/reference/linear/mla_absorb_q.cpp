#include "sluice/ops/linear/mla_absorb_q.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::MlaAbsorbQ& op) {
  const std::int64_t nope = op.q_nope.dim(2);
  for (std::int64_t h = 0; h < op.q_latent.dim(1); ++h)
    for (std::int64_t t = 0; t < op.q_latent.dim(0); ++t)
      for (std::int64_t r = 0; r < op.q_latent.dim(2); ++r) {
        double sum = 0;
        for (std::int64_t n = 0; n < nope; ++n)
          sum +=
              get(op.q_nope, t, h, n) * (op.kv_b.present() ? weight_value(op.kv_b, h * (nope + op.v) + n, r)
                                                           : weight_value(op.embed_q[h], r, n));
        set(op.q_latent, sum, t, h, r);
      }
}

}  // namespace sluice::backend::reference
