// The decode class of the products: few tokens, limited by the bytes of the weights. Handles any number of
// tokens, each with the same bits regardless of the others.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::decode {

void launch_decode(Context& context, const LinearCall& call);

}  // namespace sluice::backend::cuda::linear::decode
