// The parameters of a root-mean-square norm.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::layers {

struct RmsNormWeights {
  ops::ConstView weight;  // F32 [D]
  double eps = 1e-6;
};

}  // namespace sluice::layers
