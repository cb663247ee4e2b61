#include "sluice/ops/routing/route_softmax.h"

#include <cmath>

#include "backend/reference/routing/largest.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference {

using namespace routing;

template <>
void run(const ops::RouteSoftmax& op) {
  std::vector<double> logits(to_size(op.logits.dim(1)));
  for (std::int64_t t = 0; t < op.logits.dim(0); ++t) {
    for (std::size_t e = 0; e < logits.size(); ++e) logits[e] = get(op.logits, t, e);
    const std::vector<std::int32_t> order = falling_order(logits);
    const double largest = logits[order[0]];
    // A logit equal to the largest gives exp(0), even if both are infinite.
    const auto mass = [&](std::size_t e) {
      return logits[e] == largest ? 1.0 : std::exp(logits[e] - largest);
    };
    double sum = 0;
    for (std::int64_t e = 0; e < (op.normalize ? op.k : op.logits.dim(1)); ++e)
      sum += mass(to_size(order[e]));
    for (std::int64_t j = 0; j < op.k; ++j) {
      const std::int32_t expert = order[j];
      static_cast<std::int32_t*>(op.experts.data)[offset(op.experts, t, j)] = expert;
      set(op.weights, mass(to_size(expert)) / sum, t, j);
    }
  }
}

}  // namespace sluice::backend::reference
