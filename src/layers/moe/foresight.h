// A guess at what the next layer's router will choose, made while this layer's experts are still missing from
// the residual stream: that changes little from layer to layer.
#pragma once

#include "layers/moe/router.h"
#include "layers/norm.h"

namespace sluice::layers::moe {

struct Foresight {
  // Of the next layer; absent: it has no experts, or there is none.
  RmsNormWeights norm;
  Router router;

  bool present() const { return router.gate.present(); }
  // I32 [T,k] from the residual x [T,hidden].
  ops::View guess(Device& dev, const ops::View& x) const;
};

}  // namespace sluice::layers::moe
