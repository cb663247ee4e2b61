#include "sluice/ops/delta/delta_gates.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"

namespace sluice::backend::reference::delta {

namespace {

// log(softplus(x)): its sum with A_log is finite even where exp(A_log) overflows and softplus underflows.
double log_softplus(double x) {
  if (x < -40) return x;
  return std::log(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
}

}  // namespace

}  // namespace sluice::backend::reference::delta

namespace sluice::backend::reference {

using namespace delta;

template <>
void run(const ops::DeltaGates& op) {
  for (std::int64_t t = 0; t < op.a.dim(0); ++t)
    for (std::int64_t h = 0; h < op.a.dim(1); ++h) {
      set(op.g, -std::exp(get(op.A_log, h) + log_softplus(get(op.a, t, h) + get(op.dt_bias, h))), t, h);
      set(op.beta, 1 / (1 + std::exp(-get(op.b, t, h))), t, h);
    }
}

}  // namespace sluice::backend::reference
