// For many tokens: packed weights dequantised to BF16 once, before their product.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::prefill {

// Whether each weight would otherwise be dequantised for several tiles of tokens, and all of them fit into a
// modest amount of scratch memory.
bool worth_unpacking(const LinearCall& call);
// Dequantises into the context's scratch memory and returns the call that reads it. The values, and so the
// results, are those of dequantising in the product's kernel.
LinearCall unpack_weights(Context& context, const LinearCall& call);

}  // namespace sluice::backend::cuda::linear::prefill
