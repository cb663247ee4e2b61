#include "sluice/ops/delta/delta_kkt.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference::delta {

namespace {

// beta_i k_i[c]; with BF16 keys the product is F32, rounded to BF16.
double scaled_key(const ops::ConstView& k, std::int64_t c, double beta) {
  if (k.dtype == ops::DType::f32) return get(k, c) * beta;
  return ops::to_float(ops::to_bfloat16(static_cast<float>(get(k, c) * beta)));
}

}  // namespace

}  // namespace sluice::backend::reference::delta

namespace sluice::backend::reference {

using namespace delta;

template <>
void run(const ops::DeltaKkt& op) {
  const std::int64_t tokens = op.k.dim(1);
  const std::int64_t heads = op.beta.dim(2);
  const std::int64_t heads_per_key = heads / op.k.dim(2);
  for (std::int64_t b = 0; b < op.k.dim(0); ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < op.chunk; ++j) {
          const std::int64_t other = i / op.chunk * op.chunk + j;
          double dot = 0;
          if (other < i) {
            const ops::ConstView k_i = op.k[b][i][h / heads_per_key];
            const ops::ConstView k_j = op.k[b][other][h / heads_per_key];
            for (std::int64_t c = 0; c < op.k.dim(3); ++c)
              dot += scaled_key(k_i, c, get(op.beta, b, i, h)) * get(k_j, c);
            const double g_i = get(op.g, b, i, h);
            const double g_j = get(op.g, b, other, h);
            if (g_i != g_j) dot *= std::exp(g_i - g_j);  // equal, even if both are -inf: no decay in between
          }
          set(op.A, dot, b, i, h, j);
        }
}

}  // namespace sluice::backend::reference
