// A packed cache for calls that may also pass the rows of their own tokens as numbers. The tokens of a tile
// are in one block (fresh_rows.h).
#pragma once

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

  __device__ __forceinline__ FreshRows of(const TokenTile& tile, int kv_head) const {
    return {packed.of(tile, kv_head), tokens, tile.first_fresh(tile.begin), tile.base, kv_head};
  }
};

}  // namespace sluice::backend::cuda::attention::packed
