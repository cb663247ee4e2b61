// Packed weights that are many tokens' made BF16 once, ahead of their product.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::prefill {

// Whether each weight would otherwise be unpacked for several tiles of tokens, and all of them fit into a
// modest scratch memory.
bool worth_unpacking(const LinearCall& call);
// Unpacks into the context's scratch memory, and returns the call that reads it: the values, and so the
// results, are those of unpacking on the way to the tensor cores.
LinearCall unpack_weights(Context& context, const LinearCall& call);

}  // namespace sluice::backend::cuda::linear::prefill
