// What the device can do at best, measured.
#pragma once

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/rates.h"

namespace sluice::backend::cuda {

// Bytes read from device memory, and BF16 operations of the matrix units with F32 sums.
// With at most so many bytes of memory; 0: what suits.
ops::Rates measure_rates(Context& context, std::uint64_t memory_limit);

}  // namespace sluice::backend::cuda
