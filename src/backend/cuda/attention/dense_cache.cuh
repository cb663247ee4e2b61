// Caches of F32 or BF16 rows.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/sequences.cuh"

namespace sluice::backend::cuda::attention {

struct DenseRows {
  const void* data;
  long long stride;
  bool bf16;

  __device__ __forceinline__ float at(long long row, int i) const {
    const long long offset = row * stride + i;
    return bf16 ? to_float(static_cast<const Bf16*>(data)[offset]) : static_cast<const float*>(data)[offset];
  }
};

// [S,KH,width], or [S,width] for one head; pooled or not.
struct DenseCache {
  const void* data = nullptr;
  bool bf16 = false;
  long long pool_stride = 0;
  long long row_stride = 0;
  long long head_stride = 0;

  DenseCache() = default;
  DenseCache(const ops::ConstView& view, bool pooled)
      : data(view.data), bf16(view.dtype == ops::DType::bf16), pool_stride(cuda::pool_stride(view, pooled)) {
    const int row = pooled ? 1 : 0;
    row_stride = view.strides[row];
    if (view.rank() - row == 3) head_stride = view.strides[row + 1];
  }
  // BF16 rows that begin at multiples of 16 bytes.
  bool whole_chunks() const {
    return bf16 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && pool_stride % 8 == 0 &&
           row_stride % 8 == 0 && head_stride % 8 == 0;
  }
  template <class Tile>
  __device__ __forceinline__ DenseRows of(const Tile& tile, int kv_head) const {
    return of(tile.slot, kv_head, 0);
  }
  __device__ __forceinline__ DenseRows of(long long slot, int kv_head, long long) const {
    const long long offset = slot * pool_stride + kv_head * head_stride;
    return {static_cast<const char*>(data) + offset * (bf16 ? 2 : 4), row_stride, bf16};
  }
};

}  // namespace sluice::backend::cuda::attention
