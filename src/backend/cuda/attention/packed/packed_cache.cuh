// TurboQuant caches: rows of codes and a norm each, on a ring. Kernels see logical rows, the oldest first.
#pragma once

#include <cmath>

#include "backend/cuda/cache/codebook.cuh"
#include "backend/cuda/runtime/sequences.cuh"

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

  __device__ __forceinline__ long long slot_of(long long row) const {
    const long long at = ring_start + row;
    return at >= capacity ? at - capacity : at;
  }
  __device__ __forceinline__ float at(long long row, int i) const {
    const long long slot = slot_of(row);
    return cache::read_level(codes + slot * stride, i, bits, levels) * (norms[slot] * root);
  }
};

// codes [KH,S,bytes] and norms [KH,S], or without heads; pooled or not.
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

  // 4- or 8-bit rows that begin at multiples of 16 bytes.
  bool whole_chunks() const {
    return (bits == 4 || bits == 8) && reinterpret_cast<std::uintptr_t>(codes) % 16 == 0 &&
           code_pool_stride % 16 == 0 && code_head_stride % 16 == 0 && code_row_stride % 16 == 0;
  }
  __device__ __forceinline__ PackedRows of(long long slot, int kv_head, long long ring_start) const {
    return {codes + slot * code_pool_stride + kv_head * code_head_stride,
            norms + slot * norm_pool_stride + kv_head * norm_head_stride,
            levels.values,
            code_row_stride,
            ring_start,
            capacity,
            root,
            bits};
  }
};

}  // namespace sluice::backend::cuda::attention::packed
