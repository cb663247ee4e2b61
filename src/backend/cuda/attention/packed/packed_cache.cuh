// TurboQuant caches: rows of codes with a norm each, in a ring or in pages. Kernels use logical rows, the
// oldest first.
#pragma once

#include <climits>
#include <cmath>

#include "backend/cuda/cache/codebook.cuh"
#include "backend/cuda/runtime/pages.cuh"

namespace sluice::backend::cuda::attention::packed {

struct PackedRows {
  const unsigned char* codes;
  const float* norms;
  const float* levels;
  long long stride;
  long long ring_start;
  long long capacity;
  float root;  // 1/sqrt(D)
  int bits;
  long long code_page_stride;
  long long norm_page_stride;
  SequencePages pages;

  // The page that contains `row`, as contiguous rows.
  __device__ __forceinline__ PackedRows page_of(long long row) const {
    return pages.paged() ? in_page(row, pages.page(pages.entry(row))) : *this;
  }
  __device__ __forceinline__ PackedRows in_page(long long row, int page) const {
    PackedRows rows = *this;
    if (!pages.paged()) return rows;
    const long long first = row - pages.within(row);
    rows.codes += page * code_page_stride - first * stride;
    rows.norms += page * norm_page_stride - first;
    rows.pages = {};
    return rows;
  }
  __device__ __forceinline__ long long slot_of(long long row) const {
    const long long at = ring_start + row;
    return at >= capacity ? at - capacity : at;
  }
  __device__ __forceinline__ float at(long long row, int i) const {
    const long long slot = slot_of(row);
    return cache::read_level(codes + slot * stride, i, bits, levels) * (norms[slot] * root);
  }
};

// codes [KH,S,bytes] and norms [KH,S], or without heads; pooled, paged, or neither.
struct PackedCache {
  const unsigned char* codes;
  const float* norms;
  long long code_pool_stride;
  long long code_head_stride;
  long long code_row_stride;
  long long norm_pool_stride;
  long long norm_head_stride;
  long long capacity;
  float root;
  int bits;
  cache::Levels levels;

  PackedCache(const ops::ConstView& code_view, const ops::ConstView& norm_view, std::int64_t bits,
              bool pooled, bool heads = true)
      : codes(static_cast<const unsigned char*>(code_view.data)),
        norms(static_cast<const float*>(norm_view.data)),
        code_pool_stride(pool_stride(code_view, pooled)),
        code_head_stride(heads ? code_view.strides[pooled ? 1 : 0] : 0),
        code_row_stride(code_view.strides[code_view.rank() - 2]),
        norm_pool_stride(pool_stride(norm_view, pooled)),
        norm_head_stride(heads ? norm_view.strides[pooled ? 1 : 0] : 0),
        capacity(code_view.dim(code_view.rank() - 2)),
        root(1 / std::sqrt(static_cast<float>(code_view.shape.back() * 8 / bits))),
        bits(static_cast<int>(bits)),
        levels(bits) {}

  // 4- or 8-bit rows aligned to 16 bytes.
  bool whole_chunks() const {
    return (bits == 4 || bits == 8) && reinterpret_cast<std::uintptr_t>(codes) % 16 == 0 &&
           code_pool_stride % 16 == 0 && code_head_stride % 16 == 0 && code_row_stride % 16 == 0;
  }
  // The rows in a ring, or in a sequence's pages; `slot` is used without pages only.
  __device__ __forceinline__ PackedRows of(long long slot, int kv_head, long long ring_start,
                                           const SequencePages& pages) const {
    const long long pool_row = pages.paged() ? 0 : slot;
    return {codes + pool_row * code_pool_stride + kv_head * code_head_stride,
            norms + pool_row * norm_pool_stride + kv_head * norm_head_stride,
            levels.values,
            code_row_stride,
            ring_start,
            pages.paged() ? LLONG_MAX / 2 : capacity,
            root,
            bits,
            code_pool_stride,
            norm_pool_stride,
            pages};
  }
  template <class Tile>
  __device__ __forceinline__ PackedRows of(const Tile& tile, int kv_head) const {
    return of(tile.slot, kv_head, tile.ring_start, tile.pages);
  }
};

}  // namespace sluice::backend::cuda::attention::packed
