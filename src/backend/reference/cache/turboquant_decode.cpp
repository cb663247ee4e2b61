#include "sluice/ops/cache/turboquant_decode.h"

#include "backend/reference/cache/rotation.h"
#include "backend/reference/cache/turboquant_vector.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace cache;

template <>
void run(const ops::TurboquantDecode& op) {
  for (std::int64_t t = 0; t < op.out.dim(0); ++t)
    for (std::int64_t h = 0; h < op.out.dim(1); ++h) {
      std::vector<double> values = decode_vector(op.codes[h][t], get(op.norms, h, t), op.bits);
      if (!op.rotated) rotate_back(values, op.signs);
      write_row(values, op.out[t][h]);
    }
}

}  // namespace sluice::backend::reference
