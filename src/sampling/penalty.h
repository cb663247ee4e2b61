// Applies penalties to a logit: the arithmetic that all backends share.
#pragma once

#include <cmath>
#include <cstdint>

#include "sampling/anywhere.h"

namespace sluice::sampling {

struct Penalties {
  float repetition = 1;
  float presence = 0;
  float frequency = 0;

  SLUICE_ANYWHERE bool any() const { return repetition != 1 || presence != 0 || frequency != 0; }
};

// The logit of a token that occurred `count` times. Product and sum are rounded once everywhere, whether or
// not a compiler fuses them.
SLUICE_ANYWHERE inline float penalised(float logit, std::int32_t count, const Penalties& penalties) {
  if (count <= 0) return logit;
  const float repeated = logit > 0 ? logit / penalties.repetition : logit * penalties.repetition;
  const double taken = fma(static_cast<double>(penalties.frequency), static_cast<double>(count),
                           static_cast<double>(penalties.presence));
  return static_cast<float>(static_cast<double>(repeated) - taken);
}

}  // namespace sluice::sampling
