// Blocks of a cluster: each may write into the others' shared memory. From compute capability 9.0 on.
#pragma once

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

// launch() of a kernel with `cluster` blocks along x in a cluster.
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

}  // namespace sluice::backend::cuda

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
namespace sluice::backend::cuda {

// Puts `value` where block `rank` of the cluster has `place`.
__device__ __forceinline__ void store_in_block(double* place, unsigned rank, double value) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "st.shared::cluster.f64 [there], %2;\n"
      "}\n" ::"r"(shared_address(place)),
      "r"(rank), "d"(value)
      : "memory");
}

// All threads of all blocks meet; what they wrote before is there after.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace sluice::backend::cuda
#endif
