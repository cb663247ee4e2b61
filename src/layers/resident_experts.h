// Experts that all are in memory.
#pragma once

#include "layers/device.h"
#include "layers/moe_input.h"

namespace sluice::layers {

struct ResidentExperts {
  void forward(Device& dev, const Moe& moe, const MoeInput& in) const;
};

}  // namespace sluice::layers
