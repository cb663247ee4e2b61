// Thread block clusters: each block may access the others' shared memory. They need compute capability 9.0;
// kernels compile for earlier ones but must not be launched there.
#pragma once

#include "backend/cuda/device/async_copy.cuh"
#include "backend/cuda/runtime/launch.h"

namespace sluice::backend::cuda {

// Like launch(), with clusters of `cluster` blocks along x.
template <class... Parameters, class... Arguments>
void launch_clusters(Context& context, void (*kernel)(Parameters...), unsigned cluster, const Grid& grid,
                     Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = context.stream();
  config.attrs = attributes;
  config.numAttrs = 2;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "launching a kernel");
}

// Stores `value` at `place` in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void store_in_block(double* place, unsigned rank, double value) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "st.shared::cluster.f64 [there], %2;\n"
      "}\n" ::"r"(shared_address(place)),
      "r"(rank), "d"(value)
      : "memory");
#endif
}

// Loads from `place` in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ int load_from_block(const int* place, unsigned rank) {
  int value = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %1, %2;\n"
      "ld.shared::cluster.s32 %0, [there];\n"
      "}\n"
      : "=r"(value)
      : "r"(shared_address(place)), "r"(rank)
      : "memory");
#endif
  return value;
}

// A barrier in two parts: all threads of all blocks arrive, then wait for one another; writes before it are
// visible after it. A block's shared memory may be written only once that block has started, so a barrier
// must precede the first store_in_block().
__device__ __forceinline__ void arrive_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

}  // namespace sluice::backend::cuda
