// sm_90a: barriers in shared memory (mbarrier), warpgroup matrix products (wgmma), register reallocation.
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

// Initialises the barriers of a ring buffer, visible to the whole block.
template <int kStages>
__device__ __forceinline__ void set_up_ring(Barrier (&full)[kStages], int producers,
                                            Barrier (&empty)[kStages], int consumers) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      full[s].set_up(producers);
      empty[s].set_up(consumers);
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

// The wgmma descriptor of rows of 128 bytes in swizzled groups of eight, the first at a multiple of 1024
// bytes.
__device__ __forceinline__ std::uint64_t describe_rows(const void* rows) {
  constexpr std::uint64_t kGroupStride = 1024 >> 4;
  constexpr std::uint64_t kSwizzle128 = 1;
  return (shared_address(rows) & 0x3ffff) >> 4 | 1ull << 16 | kGroupStride << 32 | kSwizzle128 << 62;
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kOpen>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kOpen) : "memory");
}
// For the end: also keeps the compiler from reading the sums before they are complete.
template <int kCount>
__device__ __forceinline__ void wait_for_sums(float (&sums)[kCount]) {
  wait_for_products<0>();
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}

// sums[64 x N] = (keep ? sums : 0) + a[64 x 16] b[N x 16]T. The lanes of warp w hold rows 16w to 16w + 15:
// lane l has columns 8g + l % 4 * 2 and the next one, of row l / 4 at sums[4g] and of the row 8 below at
// sums[4g + 2].
#define SLUICE_SUMS_8(i)                                                                     \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SLUICE_SUMS_64(i)                                                               \
  SLUICE_SUMS_8(i), SLUICE_SUMS_8(i + 8), SLUICE_SUMS_8(i + 16), SLUICE_SUMS_8(i + 24), \
      SLUICE_SUMS_8(i + 32), SLUICE_SUMS_8(i + 40), SLUICE_SUMS_8(i + 48), SLUICE_SUMS_8(i + 56)

__device__ __forceinline__ void multiply_64(float (&sums)[32], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_8(0), SLUICE_SUMS_8(8), SLUICE_SUMS_8(16), SLUICE_SUMS_8(24)
      : "l"(a), "l"(b), "r"(keep));
}

__device__ __forceinline__ void multiply_64(float (&sums)[64], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_64(0)
      : "l"(a), "l"(b), "r"(keep));
}

__device__ __forceinline__ void multiply_64(float (&sums)[128], std::uint64_t a, std::uint64_t b, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : SLUICE_SUMS_64(0), SLUICE_SUMS_64(64)
      : "l"(a), "l"(b), "r"(keep));
}

#undef SLUICE_SUMS_64
#undef SLUICE_SUMS_8

}  // namespace sluice::backend::cuda
#endif
