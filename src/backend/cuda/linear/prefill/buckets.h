// The (token, slot) pairs of an expert product, sorted into one bucket per expert, and the buckets divided
// into tiles.
#pragma once

#include "backend/cuda/linear/linear.h"

namespace sluice::backend::cuda::linear::prefill {

struct BucketTile {
  int matrix;
  int first;  // index into `order`
  int rows;
};

// All in device memory.
struct Buckets {
  const int* order = nullptr;  // pairs token * slots + slot, those of expert 0 first
  const BucketTile* tiles = nullptr;
  const int* tile_count = nullptr;

#ifdef __CUDACC__
  __device__ __forceinline__ bool present() const {
    return order != nullptr;
  }
#endif
};

inline constexpr int kMaxBuckets = 1024;

std::size_t bucket_bytes(const LinearCall& call, int tile_rows);
// Sorts on the device, in bucket_bytes() of scratch memory. Pairs with invalid experts are reported and
// skipped.
Buckets sort_by_expert(Context& context, const LinearCall& call, int tile_rows, std::byte* memory);

}  // namespace sluice::backend::cuda::linear::prefill
