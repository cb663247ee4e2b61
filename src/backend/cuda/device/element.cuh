// Activations on the device: F32 or BF16 in memory, float in registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/runtime/context.h"

namespace sluice::backend::cuda {

using Bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float x) {
  return x;
}
__device__ __forceinline__ float to_float(Bf16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float to_float(__half x) {
  return __half2float(x);
}
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ Bf16 from_float<Bf16>(float x) {
  return __float2bfloat16_rn(x);
}

// Calls f.operator()<float>() or f.operator()<Bf16>().
template <class F>
void with_activation(ops::DType type, F&& f) {
  if (type == ops::DType::f32) return f.template operator()<float>();
  if (type == ops::DType::bf16) return f.template operator()<Bf16>();
  refuse_type(type);
}

// The same for parameters, which may also be F16. Uploads align them for their type.
template <class F>
void with_parameter(ops::DType type, F&& f) {
  if (type == ops::DType::f16) return f.template operator()<__half>();
  with_activation(type, f);
}

// A parameter vector of any type, read by index: for small parameters, for which template instances are not
// worthwhile.
struct Parameter {
  const void* data = nullptr;
  ops::DType type = ops::DType::f32;

  __device__ __forceinline__ bool present() const { return data != nullptr; }
  __device__ __forceinline__ float operator[](long long i) const {
    if (type == ops::DType::f32) return static_cast<const float*>(data)[i];
    if (type == ops::DType::bf16) return __bfloat162float(static_cast<const Bf16*>(data)[i]);
    return __half2float(static_cast<const __half*>(data)[i]);
  }
};

}  // namespace sluice::backend::cuda
