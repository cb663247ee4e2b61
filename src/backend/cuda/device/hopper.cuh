// sm_90a: barriers in shared memory (mbarrier), ring buffers of stages that they guard, register
// reallocation.
#pragma once

#include <cstdint>

#include "backend/cuda/device/async_copy.cuh"
#include "backend/cuda/device/warp.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
namespace sluice::backend::cuda {

// Counts arrivals; a phase completes when `count` threads have arrived.
class Barrier {
 public:
  __device__ __forceinline__ void set_up(int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state_)), "r"(count)
                 : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state_)) : "memory");
  }
  // For a whole warp, counted as one arrival.
  __device__ __forceinline__ void arrive_once_per_warp() {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) arrive();
  }
  // Arrives when the thread's outstanding cp.async copies are complete.
  __device__ __forceinline__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&state_))
                 : "memory");
  }
  // Arrives when `bytes` bytes have been copied from global memory; both addresses and `bytes` are multiples
  // of 16.
  __device__ __forceinline__ void fill(void* to, const void* from, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(&state_))
        : "memory");
  }
  // Waits until the phase of this parity is complete; parity 1 also stands for the phase before the first, so
  // that such a wait returns at once.
  __device__ __forceinline__ void wait(std::uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\n"
        "bra again;\n"
        "over:\n"
        "}\n" ::"r"(shared_address(&state_)),
        "r"(parity)
        : "memory");
  }

 private:
  std::uint64_t state_;
};

// To be called after barriers were initialised, by the thread that did it.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// A position in a ring buffer of stages, and the parity of its barriers' phase.
template <int kStages>
struct Turn {
  int index = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void next() {
    if (++index < kStages) return;
    index = 0;
    parity ^= 1;
  }
};

// A ring buffer of stages in shared memory, and a reader's or writer's position in it.
template <int kStages>
struct StageRing {
  std::byte* memory;
  Barrier* full;   // writers arrive when their part of a stage is complete
  Barrier* empty;  // readers arrive when they have read it
  Turn<kStages> turn = {};

  __device__ __forceinline__ void next() { turn.next(); }
  __device__ __forceinline__ void wait_until_full() const { full[turn.index].wait(turn.parity); }
  __device__ __forceinline__ void wait_until_empty() const { empty[turn.index].wait(turn.parity ^ 1); }
};

// Initialises the barriers of a ring buffer, visible to the whole block.
template <int kStages>
__device__ __forceinline__ void set_up_ring(Barrier (&full)[kStages], int writers, Barrier (&empty)[kStages],
                                            int readers) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      full[s].set_up(writers);
      empty[s].set_up(readers);
    }
    publish_barriers();
  }
  __syncthreads();
}

// Makes this thread's writes to shared memory visible to the tensor cores (async proxy).
__device__ __forceinline__ void publish_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace sluice::backend::cuda
#endif
