// Experts in memory with the shared one after the last: it is one more choice of every token.
#pragma once

#include "layers/device.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

struct JoinedExperts {
  ops::ExpertWeights gate_proj;  // [experts+1, intermediate, hidden]
  ops::ExpertWeights up_proj;    // [experts+1, intermediate, hidden]
  ops::ExpertWeights down_proj;  // [experts+1, hidden, intermediate]
  ops::View choices;             // I32 [tokens, top_k+1] to choose in, whose last column names the shared one

  void forward(Device& dev, const Moe& moe, const Input& in) const;
};

}  // namespace sluice::layers::moe
