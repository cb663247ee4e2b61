// Asynchronous 16-byte copies from global to shared memory (cp.async).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/integer_cast.h"

namespace sluice::backend::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return to_unsigned(__cvta_generic_to_shared(pointer));
}

// Both addresses are multiples of 16. If not `inside`, nothing is read and zeros are written.
__device__ __forceinline__ void copy_16(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// Commits the thread's copies since the last commit as one group.
__device__ __forceinline__ void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `kOpen` of the thread's groups are in flight.
template <int kOpen>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

}  // namespace sluice::backend::cuda
