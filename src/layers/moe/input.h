// The inputs and outputs of a mixture's experts.
#pragma once

#include "sluice/ops/view.h"

namespace sluice::layers {
struct Moe;
}

namespace sluice::layers::moe {

struct Input {
  ops::View h;            // [T,hidden], normalised
  ops::View x;            // [T,hidden], the residual that the mixture is added to
  ops::View logits;       // F32 [T,experts], the router's
  ops::View shared_gate;  // F32 [T,1], or absent
};

// The choices of each token, and the memory for the results.
struct Chosen {
  ops::View experts;     // I32 [T,k]
  ops::View weights;     // F32 [T,k]
  ops::View out;         // [T,k,hidden]
  ops::View shared_out;  // [T,hidden], or absent
};

}  // namespace sluice::layers::moe
