// Experts that are all in memory.
#pragma once

#include "layers/device.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

struct ResidentExperts {
  void forward(Device& dev, const Moe& moe, const Input& in) const;
};

}  // namespace sluice::layers::moe
