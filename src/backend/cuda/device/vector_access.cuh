// Accesses to N neighbouring elements of up to 16 bytes each. The address must be a multiple of N elements
// (or of 16 bytes if that is less); N is a power of two.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

// Whether every row of `view` begins at a multiple of `elements` elements.
template <class AnyView>
bool aligned(const AnyView& view, int elements) {
  for (int d = 0; d < view.rank() - 1; ++d)
    if (view.strides[d] % elements != 0) return false;
  const std::size_t bytes = to_size(elements) * size_bytes(view.dtype);
  return reinterpret_cast<std::uintptr_t>(view.data) % bytes == 0;
}

// As many of N elements as one access handles.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  static constexpr int kCount = N * sizeof(T) < 16 ? N : to_int(16 / sizeof(T));
  T at[kCount];
};

template <class T, int N>
__device__ __forceinline__ void load_vector(const T* from, float (&to)[N]) {
  using Part = Pack<T, N>;
#pragma unroll
  for (int i = 0; i < N; i += Part::kCount) {
    const Part part = *reinterpret_cast<const Part*>(from + i);
#pragma unroll
    for (int j = 0; j < Part::kCount; ++j) to[i + j] = to_float(part.at[j]);
  }
}

template <class T, int N>
__device__ __forceinline__ void store_vector(T* to, const float (&from)[N]) {
  using Part = Pack<T, N>;
#pragma unroll
  for (int i = 0; i < N; i += Part::kCount) {
    Part part;
#pragma unroll
    for (int j = 0; j < Part::kCount; ++j) part.at[j] = from_float<T>(from[i + j]);
    *reinterpret_cast<Part*>(to + i) = part;
  }
}

// An activation of either type, read by index.
struct Activation {
  const void* data = nullptr;
  ops::DType type = ops::DType::f32;

  template <int N>
  __device__ __forceinline__ void load(long long at, float (&to)[N]) const {
    if (type == ops::DType::f32)
      load_vector(static_cast<const float*>(data) + at, to);
    else
      load_vector(static_cast<const Bf16*>(data) + at, to);
  }
  __device__ __forceinline__ float operator[](long long at) const {
    return type == ops::DType::f32 ? static_cast<const float*>(data)[at]
                                   : to_float(static_cast<const Bf16*>(data)[at]);
  }
};

}  // namespace sluice::backend::cuda
