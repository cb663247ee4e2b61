#include "sluice/ops/linear/mla_project_out.h"

#include "backend/reference/linear/weight_row.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference {

using namespace linear;

template <>
void run(const ops::MlaProjectOut& op) {
  const std::int64_t v = op.out.dim(2);
  for (std::int64_t h = 0; h < op.out.dim(1); ++h)
    for (std::int64_t i = 0; i < v; ++i) {
      const std::vector<double> row = op.kv_b.present() ? weight_row(op.kv_b, h * (op.nope + v) + op.nope + i)
                                                        : weight_row(op.unembed_out[h], i);
      for (std::int64_t t = 0; t < op.out.dim(0); ++t) set(op.out, dot(op.latent[t][h], row), t, h, i);
    }
}

}  // namespace sluice::backend::reference
