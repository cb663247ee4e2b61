#include "sluice/ops/cache/turboquant_encode.h"

#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::TurboquantEncode& op) {
  for (std::int64_t t = 0; t < op.x.dim(0); ++t)
    for (std::int64_t h = 0; h < op.x.dim(1); ++h)
      encode_vector(op.x[t][h], op.signs, op.bits, op.norm, op.codes[h][t],
                    static_cast<float*>(op.norms.data)[offset(op.norms, h, t)]);
}

}  // namespace sluice::backend::reference
