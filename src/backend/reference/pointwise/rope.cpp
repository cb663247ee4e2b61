#include "sluice/ops/pointwise/rope.h"

#include <cmath>

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference {

template <>
void run(const ops::Rope& op) {
  const std::int64_t pairs = op.inv_freq.dim(0);
  const bool half = op.pairing == ops::Pairing::half;
  for (std::int64_t t = 0; t < op.x.dim(0); ++t)
    for (std::int64_t h = 0; h < op.x.dim(1); ++h)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = to_double(get_id(op.positions, t)) * get(op.inv_freq, i);
        const double c = std::cos(angle) * op.mscale;
        const double s = std::sin(angle) * op.mscale;
        const std::int64_t first = half ? i : 2 * i;
        const std::int64_t second = half ? i + pairs : 2 * i + 1;
        const double a = get(op.x, t, h, first);
        const double b = get(op.x, t, h, second);
        set(op.x, a * c - b * s, t, h, first);
        set(op.x, b * c + a * s, t, h, second);
      }
}

}  // namespace sluice::backend::reference
