// Scores to weights that sum to one.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::backend::reference::attention {

inline void softmax(std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

}  // namespace sluice::backend::reference::attention
