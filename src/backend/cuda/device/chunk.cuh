// Rows in chunks: a thread accesses V consecutive elements at a time, in 16-byte accesses if the host found
// that address, strides and width allow it, one by one otherwise. A thread gets the same elements either way,
// so alignment never changes a sum.
#pragma once

#include <type_traits>

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/device/rows.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

// Elements in 16 bytes.
template <class T>
inline constexpr int kChunk = 16 / to_int(sizeof(T));

template <class T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Chunk {
  T values[V];
};

// `left` elements of the row remain; a chunk that extends beyond them is filled up with zeros.
template <int V, class T>
__device__ __forceinline__ Chunk<T, V> load_chunk(const T* from, long long left, bool aligned) {
  using Word = std::conditional_t<V * sizeof(T) % 16 == 0, uint4, uint2>;
  Chunk<T, V> chunk;
  if (aligned) {
#pragma unroll
    for (int w = 0; w < to_int(sizeof(chunk) / sizeof(Word)); ++w)
      reinterpret_cast<Word*>(&chunk)[w] = reinterpret_cast<const Word*>(from)[w];
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i) chunk.values[i] = i < left ? from[i] : T(0.0f);
  }
  return chunk;
}

template <int V, class T>
__device__ __forceinline__ void store_chunk(const Chunk<T, V>& chunk, T* to, long long left, bool aligned) {
  using Word = std::conditional_t<V * sizeof(T) % 16 == 0, uint4, uint2>;
  if (aligned) {
#pragma unroll
    for (int w = 0; w < to_int(sizeof(chunk) / sizeof(Word)); ++w)
      reinterpret_cast<Word*>(to)[w] = reinterpret_cast<const Word*>(&chunk)[w];
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (i < left) to[i] = chunk.values[i];
  }
}

template <int V, class T>
__device__ __forceinline__ void widen(const Chunk<T, V>& chunk, float (&values)[V]) {
#pragma unroll
  for (int i = 0; i < V; ++i) values[i] = to_float(chunk.values[i]);
}

template <class T, int V>
__device__ __forceinline__ Chunk<T, V> narrow(const float (&values)[V]) {
  Chunk<T, V> chunk;
#pragma unroll
  for (int i = 0; i < V; ++i) chunk.values[i] = from_float<T>(values[i]);
  return chunk;
}

// Whether every full chunk of V elements is aligned for vector access in load_chunk.
template <class AnyView>
bool chunks_aligned(const AnyView& view, int v) {
  const auto size = static_cast<long long>(ops::size_bytes(view.dtype));
  const long long unit = v * size < 16 ? v * size : 16;
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % unit == 0 && view.shape.back() % v == 0;
  for (int d = 0; d < view.rank() - 1; ++d) aligned = aligned && view.strides[d] * size % unit == 0;
  return aligned;
}

// The rows of a tensor for kernels that read them in chunks.
template <class Pointer>
struct ChunkedRows {
  Pointer data;
  RowOffsets offsets;
  bool aligned;

  ChunkedRows(const ops::BasicView<Pointer>& view, int v)
      : data(view.data), offsets(view), aligned(chunks_aligned(view, v)) {}
  template <class T>
  __device__ __forceinline__ auto row(long long i) const {
    using Element = std::conditional_t<std::is_same_v<Pointer, void*>, T, const T>;
    return static_cast<Element*>(data) + offsets[i];
  }
};

// Calls f with the types of two activation fields.
template <class F>
void with_activations(ops::DType first, ops::DType second, F&& f) {
  with_activation(
      first, [&]<class A>() { with_activation(second, [&]<class B>() { f.template operator()<A, B>(); }); });
}

}  // namespace sluice::backend::cuda
