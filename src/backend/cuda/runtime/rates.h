// Measured peak rates of the device.
#pragma once

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/rates.h"

namespace sluice::backend::cuda {

// Bytes read from device memory, and BF16 operations of the tensor cores with F32 accumulation. Uses at most
// `memory_limit` bytes of memory; 0: the default.
ops::Rates measure_rates(Context& context, std::uint64_t memory_limit);

}  // namespace sluice::backend::cuda
