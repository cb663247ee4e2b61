// Predicts what the next layer's router will choose, from the residual stream without this layer's experts,
// because the stream changes little from layer to layer.
#pragma once

#include "layers/moe/router.h"
#include "layers/norm.h"

namespace sluice::layers::moe {

struct Foresight {
  // The next layer's; absent: it has no experts, or there is no next layer.
  RmsNormWeights norm;
  Router router;

  bool present() const { return router.gate.present(); }
  // Predicts I32 [T,k] from the residual x [T,hidden].
  ops::View guess(Device& dev, const ops::View& x) const;
};

}  // namespace sluice::layers::moe
