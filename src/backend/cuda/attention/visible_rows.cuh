// Which rows the queries of a warp of a prefill kernel see.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/device/warp.cuh"

namespace sluice::backend::cuda::attention {

// The rows that the lane's two query rows see, and what all of the warp's do.
struct Sight {
  int first[2];
  int last[2];
  int warp_low;     // rows before it are out of the sight of all
  int warp_high;    // and rows behind it
  int whole_first;  // rows in [whole_first, whole_last] are in the sight of all
  int whole_last;

  __device__ Sight(const AttendCall& call, const TokenTile& tile, int first_row) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const auto token_of = [&](int row) { return tile.begin + row / call.head_tile; };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int token = token_of(first_row + lane / 4 + h * 8);
      first[h] = token < tile.end ? static_cast<int>(tile.first(token)) : 0;
      last[h] = token < tile.end ? static_cast<int>(tile.last(token)) : -1;
    }
    const int first_token = token_of(first_row);
    const int last_token = token_of(first_row + 15);
    warp_low = static_cast<int>(tile.first(min(first_token, tile.end - 1)));
    warp_high = first_token < tile.end ? static_cast<int>(tile.last(min(last_token, tile.end - 1))) : -1;
    whole_first = static_cast<int>(tile.first(min(last_token, tile.end - 1)));
    whole_last = last_token < tile.end ? static_cast<int>(tile.last(first_token)) : -1;
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
