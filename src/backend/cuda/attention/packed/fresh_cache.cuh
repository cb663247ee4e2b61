// A packed cache whose last rows, those of the call's own tokens, may come beside it as numbers.
#pragma once

#include <climits>

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/attention/packed/packed_cache.cuh"

namespace sluice::backend::cuda::attention::packed {

struct FreshRows {
  PackedRows packed;
  HeadRows tokens;
  long long first;  // rows from here on are tokens
  long long base;   // row - token
  int kv_head;

  __device__ __forceinline__ FreshRows page_of(long long row) const {
    FreshRows rows = *this;
    if (row < first) rows.packed = packed.page_of(row);
    return rows;
  }
  __device__ __forceinline__ float at(long long row, int i) const {
    return row >= first ? tokens.at(row - base, kv_head, i) : packed.at(row, i);
  }
};

struct FreshCache {
  PackedCache packed;
  HeadRows tokens;  // [T,KH,D] in the rotated basis, or no data
  DeviceSequences sequences;

  __device__ __forceinline__ FreshRows of(const TokenTile& tile, int kv_head) const {
    return {packed.of(tile, kv_head), tokens,
            tokens.data != nullptr ? tile.base + sequences.begin(tile.sequence) : LLONG_MAX, tile.base,
            kv_head};
  }
};

}  // namespace sluice::backend::cuda::attention::packed
