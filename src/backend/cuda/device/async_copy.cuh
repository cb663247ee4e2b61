// Copies of 16 bytes from device memory to shared memory that run beside the thread that asked for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/integer_cast.h"

namespace sluice::backend::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return to_unsigned(__cvta_generic_to_shared(pointer));
}

// Both addresses are multiples of 16. Without `inside` nothing is read and zeros are written.
__device__ __forceinline__ void copy_16(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// Closes the group of the copies asked for since the last one.
__device__ __forceinline__ void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until at most `kOpen` of the thread's groups are still under way.
template <int kOpen>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

}  // namespace sluice::backend::cuda
