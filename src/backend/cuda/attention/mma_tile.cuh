// Attention on tensor cores over BF16 caches: tiles of rows in shared memory and the products with them.
//
// A warp has 16 query rows. In the operand and accumulator layouts of mma.cuh, lane l has query rows l/4 and
// l/4 + 8; of 8 neighbouring cache rows (scores) or columns (values) it has 2(l%4) and the next one.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/attention/dense_cache.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/vector_access.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

// Rows of kWidth BF16 values, with 16-byte chunks swizzled to avoid bank conflicts; `first` is a multiple of
// 8.
template <int kWidth>
struct TileRows {
  static constexpr int kChunks = kWidth / 8;
  static constexpr int kRowBytes = kWidth * 2;
  char* data;

  __device__ __forceinline__ char* at(int row, int chunk) const {
    return data + swizzled<kChunks>(row, chunk) * 16;
  }
  // Chunk 2 * step + half. Written so that only four addresses are computed; the others are at fixed
  // distances.
  __device__ __forceinline__ const char* at_step(int row, int step, int half) const {
    return at(row, step % 4 * 2 + half) + step / 4 * 128;
  }
  // Rows [first, first+16) and the 16 columns of step `step`, as right operands of scores.
  __device__ __forceinline__ Fragment keys(int first, int step) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    return load_matrices(at_step(first + lane / 16 * 8 + lane % 8, step, lane / 8 % 2));
  }
  // The same rows as the inner dimension, with 16 columns as two right operands.
  __device__ __forceinline__ Fragment values(int first, int step) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    return load_transposed(at_step(first + lane / 8 % 2 * 8 + lane % 8, step, lane / 16));
  }
  // Query rows [first, first+16) as a left operand.
  __device__ __forceinline__ Fragment queries(int first, int step) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    return load_matrices(at_step(first + lane / 8 % 2 * 8 + lane % 8, step, lane / 16));
  }
};

// The rows of one sequence and KV head, for copies by the threads of a warp or block: rows outside [low,
// high) become zeros.
struct FetchRows {
  const char* data;
  long long stride;  // bytes
  long long low;
  long long high;
  long long page_stride = 0;  // bytes
  int within = -1;            // mask: the bits of a row number that are its index in a page

  FetchRows() = default;
  __device__ FetchRows(const DenseCache& cache, const TokenTile& tile, int kv_head)
      : low(tile.first(tile.begin)), high(tile.last(tile.end - 1) + 1) {
    const DenseRows rows = cache.of(tile, kv_head);
    data = static_cast<const char*>(rows.data);
    stride = rows.stride * 2;
    if (!tile.pages.paged()) return;
    page_stride = rows.page_stride * 2;
    within = (1 << tile.pages.shift) - 1;
  }
  // Copies kRows rows from `row` on, which are in one page, into a tile of any layout that maps a row and a
  // chunk to an address.
  template <int kWidth, int kRows, int kThreads, class Tile>
  __device__ __forceinline__ void fetch(const Tile& tile, long long row, int page, int thread) const {
    constexpr int kChunks = kWidth / 8;
    const int begin = to_int(max(low - row, 0LL));
    const int end = to_int(min(high - row, static_cast<long long>(kRows)));
    const char* from =
        data + page * page_stride + ((row & within) + thread / kChunks) * stride + thread % kChunks * 16;
#pragma unroll
    for (int i = 0; i < kRows; i += kThreads / kChunks, from += kThreads / kChunks * stride) {
      const int r = i + thread / kChunks;
      copy_16(tile.at(r, thread % kChunks), from, r >= begin && r < end);
    }
  }
};

// Rounds 16x16 weights, left and right half, to a left operand.
__device__ __forceinline__ Fragment round_sums(const Sums& left, const Sums& right) {
  return {pack_pair(left.at[0], left.at[1]), pack_pair(left.at[2], left.at[3]),
          pack_pair(right.at[0], right.at[1]), pack_pair(right.at[2], right.at[3])};
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

__device__ __forceinline__ float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

struct MmaCall {
  AttendCall attend;
  HeadRows queries;
  DenseCache keys;
  DenseCache values;

  // The common condition of both kernels: BF16 rows of one width, in whole 16-byte chunks.
  bool whole_chunks() const {
    const int width = queries.width;
    return (width == 64 || width == 128 || width == 256) && attend.out.width == width &&
           queries.whole_chunks() && attend.out.whole_chunks() && keys.whole_chunks() &&
           values.whole_chunks();
  }
};

// Calls f.operator()<width>() for a width of 64, 128 or 256.
template <class F>
void with_mma_width(int width, F&& f) {
  if (width == 64) return f.template operator()<64>();
  if (width == 128) return f.template operator()<128>();
  f.template operator()<256>();
}

bool decode_mma_supports(const Context& context, const MmaCall& call);
void attend_decode_mma(Context& context, const MmaCall& call);
bool prefill_mma_supports(const Context& context, const MmaCall& call);
void attend_prefill_mma(Context& context, const MmaCall& call);
bool prefill_wgmma_supports(const Context& context, const MmaCall& call);
void attend_prefill_wgmma(Context& context, const MmaCall& call);

}  // namespace sluice::backend::cuda::attention
