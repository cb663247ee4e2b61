// Experts of which a device keeps some: the host fetches the others while the device waits.
#pragma once

#include "experts/device_tier.h"
#include "layers/device.h"
#include "layers/moe/foresight.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

struct TieredExperts {
  experts::DeviceTier* tier = nullptr;
  int layer = 0;        // of the tier
  Foresight foresight;  // predicts what the next layer will need

  void forward(Device& dev, const Moe& moe, const Input& in) const;

 private:
  void meet(Device& dev, const Input& in, const ops::View& chosen, const ops::View& places) const;
};

}  // namespace sluice::layers::moe
