#include "sluice/ops/routing/route_sigmoid.h"

#include <limits>

#include "backend/reference/pointwise/activation.h"
#include "backend/reference/routing/largest.h"
#include "backend/reference/runtime/element.h"
#include "backend/reference/runtime/reference.h"
#include "base/integer_cast.h"

namespace sluice::backend::reference::routing {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Sets the scores of all but the best `top_groups` groups to -inf. A group's score is the sum of its two
// largest scores.
void drop_groups(std::vector<double>& scores, std::size_t groups, std::size_t top_groups) {
  const std::size_t size = scores.size() / groups;
  std::vector<double> group_scores;
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<double> group(scores.begin() + static_cast<std::ptrdiff_t>(g * size),
                              scores.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::sort(group.begin(), group.end(), std::greater<>());
    group_scores.push_back(size > 1 ? group[0] + group[1] : group[0]);
  }
  const std::vector<std::int32_t> order = falling_order(group_scores);
  for (std::size_t g = top_groups; g < groups; ++g)
    std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(to_size(order[g]) * size), size, kMinusInfinity);
}

}  // namespace

}  // namespace sluice::backend::reference::routing

namespace sluice::backend::reference {

using namespace routing;

template <>
void run(const ops::RouteSigmoid& op) {
  std::vector<double> scores(to_size(op.logits.dim(1)));
  for (std::int64_t t = 0; t < op.logits.dim(0); ++t) {
    for (std::size_t e = 0; e < scores.size(); ++e)
      scores[e] = pointwise::sigmoid(get(op.logits, t, e)) + get(op.bias, e);
    drop_groups(scores, to_size(op.groups), to_size(op.top_groups));
    const std::vector<std::int32_t> order = falling_order(scores);
    double sum = 0;
    for (std::int64_t j = 0; j < op.k; ++j) sum += pointwise::sigmoid(get(op.logits, t, order[j]));
    const double factor = op.normalize ? op.scale / (sum + 1e-20) : op.scale;
    for (std::int64_t j = 0; j < op.k; ++j) {
      const std::int32_t expert = order[j];
      static_cast<std::int32_t*>(op.experts.data)[offset(op.experts, t, j)] = expert;
      set(op.weights, pointwise::sigmoid(get(op.logits, t, expert)) * factor, t, j);
    }
  }
}

}  // namespace sluice::backend::reference
