// The prefill class of the products: many tokens, limited by arithmetic.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::prefill {

bool supports_prefill(const LinearCall& call, const DeviceInfo& device);
void launch_prefill(Context& context, const LinearCall& call);

}  // namespace sluice::backend::cuda::linear::prefill
