// Caches of F32 or BF16 rows.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/pages.cuh"

namespace sluice::backend::cuda::attention {

struct DenseRows {
  const void* data;
  long long stride;
  bool bf16;
  long long page_stride;
  SequencePages pages;

  // The page that contains `row`, as contiguous rows.
  __device__ __forceinline__ DenseRows page_of(long long row) const {
    if (!pages.paged()) return *this;
    const long long offset = pages.page(pages.entry(row)) * page_stride - (row - pages.within(row)) * stride;
    return {static_cast<const char*>(data) + offset * (bf16 ? 2 : 4), stride, bf16, 0, {}};
  }

  __device__ __forceinline__ float at(long long row, int i) const {
    const long long offset = row * stride + i;
    return bf16 ? to_float(static_cast<const Bf16*>(data)[offset]) : static_cast<const float*>(data)[offset];
  }
};

// [S,KH,width], or [S,width] for one head; pooled, paged, or neither.
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
  // BF16 rows aligned to 16 bytes.
  bool whole_chunks() const {
    return bf16 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && pool_stride % 8 == 0 &&
           row_stride % 8 == 0 && head_stride % 8 == 0;
  }
  template <class Tile>
  __device__ __forceinline__ DenseRows of(const Tile& tile, int kv_head) const {
    const long long offset = (tile.pages.paged() ? 0 : tile.slot * pool_stride) + kv_head * head_stride;
    return {static_cast<const char*>(data) + offset * (bf16 ? 2 : 4), row_stride, bf16, pool_stride,
            tile.pages};
  }
};

}  // namespace sluice::backend::cuda::attention
