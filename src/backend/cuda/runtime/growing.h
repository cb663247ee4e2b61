// Device memory that grows in place.
#pragma once

#include <memory>

#include "sluice/ops/growing_buffer.h"

namespace sluice::backend::cuda {

// Reserves addresses for up to `most` bytes on that device. Memory is taken in multiples of
// kCudaTraits.growth.
std::unique_ptr<ops::GrowingBuffer> reserve_device(int device, std::size_t most);

}  // namespace sluice::backend::cuda
