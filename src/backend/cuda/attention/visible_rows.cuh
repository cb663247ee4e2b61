// Which rows the queries of a warp see, for prefill kernels.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

// The rows that the lane's two query rows see, and those that the warp's queries see: rows of the cache or,
// if `own`, those that the call itself passes.
struct Sight {
  int first[2];
  int last[2];
  int warp_low;     // rows before it are visible to none of the warp's queries
  int warp_high;    // nor are rows after it
  int whole_first;  // rows in [whole_first, whole_last] are visible to all of them
  int whole_last;

  __device__ Sight(const AttendCall& call, const TokenTile& tile, int first_row, bool own = false) {
    const int lane = to_int(threadIdx.x) % kWarp;
    const auto first_of = [&](int token) {
      return to_int(own ? max(tile.first(token), tile.first_fresh(token)) : tile.first(token));
    };
    const auto last_of = [&](int token) { return to_int(own ? tile.last(token) : tile.last_cached(token)); };
    const auto token_of = [&](int row) { return tile.begin + row / call.head_tile; };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int token = token_of(first_row + lane / 4 + h * 8);
      first[h] = token < tile.end ? first_of(token) : 0;
      last[h] = token < tile.end ? last_of(token) : -1;
    }
    const int first_token = token_of(first_row);
    const int last_token = token_of(first_row + 15);
    warp_low = first_of(min(first_token, tile.end - 1));
    warp_high = first_token < tile.end ? last_of(min(last_token, tile.end - 1)) : -1;
    whole_first = first_of(min(last_token, tile.end - 1));
    whole_last = last_token < tile.end ? last_of(first_token) : -1;
  }

  __device__ __forceinline__ bool any(long long row, int rows) const {
    return row <= warp_high && row + rows > warp_low;
  }
  __device__ __forceinline__ bool whole(int row, int rows) const {
    return row >= whole_first && row + rows - 1 <= whole_last;
  }
  // Whether query row h of the lane's two sees a row.
  __device__ __forceinline__ bool sees(int h, int row) const {
    return row >= first[h] && row <= last[h];
  }
};

}  // namespace sluice::backend::cuda::attention
