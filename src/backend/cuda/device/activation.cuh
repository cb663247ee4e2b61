// Activation functions, accurate to a few units in the last place.
#pragma once

namespace sluice::backend::cuda {

__device__ __forceinline__ float sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + expf(-x));
}
__device__ __forceinline__ float silu(float x) {
  return __fdividef(x, 1.0f + expf(-x));
}

}  // namespace sluice::backend::cuda
