#include "sluice/ops/routing/moe_scatter_add.h"

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

template <>
void run(const ops::MoeScatterAdd& op) {
  for (std::int64_t b = 0; b < op.bucket_out.dim(0); ++b) {
    const std::int64_t t = get_id(op.token_idx, b);
    for (std::int64_t i = 0; i < op.sum.dim(1); ++i)
      set(op.sum, get(op.sum, t, i) + get(op.weights, b) * get(op.bucket_out, b, i), t, i);
  }
}

}  // namespace sluice::backend::reference
