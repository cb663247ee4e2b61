// Launching kernels. Every kernel is launched so that it may start while its predecessor drains (programmatic
// dependent launch): it must call wait_for_inputs() before it accesses anything that an earlier kernel wrote,
// or writes anything that one may still read; it may read weights before that. allow_successor() lets the
// next kernel start early.
#pragma once

#include <utility>

#include "backend/cuda/runtime/context.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

#ifdef __CUDACC__
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void allow_successor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

struct Grid {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;  // dynamic
};

template <class... Parameters, class... Arguments>
void launch(Context& context, void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
  if (grid.shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, to_int(grid.shared_bytes)),
          "raising a kernel's shared memory");
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = context.stream();
  config.attrs = &overlap;
  config.numAttrs = context.device().compute_capability >= 90 ? 1 : 0;
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  static_assert((std::is_same_v<std::remove_cvref_t<Parameters>, std::remove_cvref_t<Arguments>> && ...),
                "pass exactly the kernel's parameter types: the arguments travel by address");
  check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers), "launching a kernel");
}

template <class Integer>
constexpr Integer divide_up(Integer value, Integer by) {
  return (value + by - 1) / by;
}

}  // namespace sluice::backend::cuda
