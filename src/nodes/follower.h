// A node that holds a part of the model for the one that leads.
#pragma once

#include "engine/layer_share.h"

namespace sluice::nodes {

class Follower : public engine::LayerShare {
 public:
  // Does what the leading node asks for until that one ends.
  virtual void follow(engine::Core& core) = 0;
};

}  // namespace sluice::nodes
