// What the device can do at best, measured.
#pragma once

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/rates.h"

namespace sluice::backend::cuda {

// Bytes read from device memory, and BF16 operations of the matrix units with F32 sums.
ops::Rates measure_rates(Context& context);

}  // namespace sluice::backend::cuda
