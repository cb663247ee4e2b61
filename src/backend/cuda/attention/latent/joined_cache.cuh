// Keys of latent attention: the concatenation of a row of latents and a row of rotary keys.
#pragma once

#include "backend/cuda/attention/dense_cache.cuh"

namespace sluice::backend::cuda::attention::latent {

template <class LatentRows>
struct JoinedRows {
  LatentRows latent;
  DenseRows rope;
  int rank;

  __device__ __forceinline__ JoinedRows page_of(long long row) const {
    return {latent.page_of(row), rope.page_of(row), rank};
  }
  __device__ __forceinline__ float at(long long row, int i) const {
    return i < rank ? latent.at(row, i) : rope.at(row, i - rank);
  }
};

template <class LatentCache>
struct JoinedCache {
  LatentCache latent;
  DenseCache rope;
  int rank;

  template <class Tile>
  __device__ __forceinline__ auto of(const Tile& tile, int kv_head) const {
    const auto rows = latent.of(tile, kv_head);
    return JoinedRows<decltype(latent.of(tile, kv_head))>{rows, rope.of(tile, kv_head), rank};
  }
};

}  // namespace sluice::backend::cuda::attention::latent
