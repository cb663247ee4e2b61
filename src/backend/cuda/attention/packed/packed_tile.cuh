// A tile of a prefill kernel for packed caches: 128 query rows per block, 16 per warp, against 64 rows of
// levels.
//
// Queries are rotated once to F16. Levels are not multiplied by norms: a key's norm scales its score, a
// value's norm is a factor of the weight and its sign one of the levels. Maxima are of score + log2 norm,
// which keeps weights in F16's range.
#pragma once

#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/online_softmax.cuh"
#include "backend/cuda/attention/packed/attend.h"
#include "backend/cuda/attention/packed/packed_format.cuh"
#include "backend/cuda/attention/visible_rows.cuh"
#include "backend/cuda/cache/rotation.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

inline constexpr int kTileWarps = 8;
inline constexpr int kTileThreads = kTileWarps * kWarp;
inline constexpr int kTileQueries = kTileWarps * 16;
inline constexpr int kTileRows = 64;  // rows of the cache per tile

// The tiles that a block iterates over: those of the visible cache, then those of the call's own rows.
struct TileWalk {
  int low;  // visible cached rows: [low, cached_high)
  int cached_high;
  int own_low;  // the call's own: [own_low, high)
  int high;
  int cached_tiles;
  int own_tiles;

  __device__ explicit TileWalk(const TokenTile& tile)
      : low(to_int(tile.first(tile.begin))),
        cached_high(to_int(tile.last_cached(tile.end - 1)) + 1),
        own_low(0),
        high(to_int(tile.last(tile.end - 1)) + 1),
        cached_tiles(max((cached_high + kTileRows - 1) / kTileRows - low / kTileRows, 0)),
        own_tiles(0) {
    if (tile.first_own == LLONG_MAX) return;
    own_low = to_int(max(tile.first(tile.begin), tile.first_fresh(tile.begin)));
    own_tiles = (high + kTileRows - 1) / kTileRows - own_low / kTileRows;
  }
  __device__ __forceinline__ int tiles() const { return cached_tiles + own_tiles; }
  __device__ __forceinline__ bool own(int index) const { return index >= cached_tiles; }
  // The first row of a tile.
  __device__ __forceinline__ int row(int index) const {
    return own(index) ? (own_low / kTileRows + index - cached_tiles) * kTileRows
                      : (low / kTileRows + index) * kTileRows;
  }
};

// Loads the block's query rows, rotated and each scaled by a power of two.
template <int kWidth>
__device__ __forceinline__ void load_queries(const PackedCall& call, const TokenTile& tile, int first_head,
                                             int heads, const TileRows<kWidth>& to, float* factors) {
  constexpr int kCount = kWidth / kWarp;
  const int lane = to_int(threadIdx.x) % kWarp;
  for (int row = threadIdx.x / kWarp; row < kTileQueries; row += kTileWarps) {
    const int token = tile.begin + row / call.attend.head_tile;
    const int head = row % call.attend.head_tile;
    const bool inside = token < tile.end && head < heads;
    float q[kCount];
#pragma unroll
    for (int r = 0; r < kCount; ++r)
      q[r] = inside ? call.queries.at(token, first_head + head, lane + r * kWarp) : 0.0f;
    const float factor = rotate_query(q, call.signs, call.rotated);
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
      const int i = lane + r * kWarp;
      *reinterpret_cast<__half*>(to.at(row, i / 8) + i % 8 * 2) = __float2half(q[r]);
    }
    if (lane == 0) factors[row] = factor;
  }
}

// A warp's softmax: sums and totals in units of 2^maximum.
template <int kWidth>
struct PackedWalk : SoftmaxSums<kWidth> {
  using SoftmaxSums<kWidth>::maximum;
  using SoftmaxSums<kWidth>::total;

  // Turns scores (-inf where not visible) into weights. Rows that are not visible may have any norm: a
  // maximum ignores NaN.
  __device__ __forceinline__ void weigh(Sums (&scores)[kTileRows / 8], const float2* columns) {
    const int column = to_int(threadIdx.x) % 4 * 2;
    float base[2];
    OnlineSoftmax::Factors factors;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float larger = maximum[h];
#pragma unroll
      for (int n = 0; n < kTileRows / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          larger = fmaxf(larger, scores[n].at[2 * h + i] + columns[n * 8 + column + i].y);
      larger = quad_max(larger);
      base[h] = larger == -INFINITY ? 0.0f : larger;
      factors.at[h] = maximum[h] == larger ? 1.0f : exp2_approx(maximum[h] - base[h]);
      maximum[h] = larger;
      total[h] *= factors.at[h];
    }
#pragma unroll
    for (int n = 0; n < kTileRows / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float norm = exp2_approx(columns[n * 8 + column + i].y);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float& score = scores[n].at[2 * h + i];
          const float part = exp2_approx(score - base[h]);
          total[h] += part;
          score = score != -INFINITY ? part * norm : 0.0f;
        }
      }
    this->rescale_sums(factors);
  }
};

// The levels of 64 rows, and the factors of their scores and weights.
template <int kWidth>
struct LevelTile {
  TileRows<kWidth> keys;
  TileRows<kWidth> values;
  const float2* columns;
};

// The 16 queries of a warp from `first_row` on, of which a lane has two, and their factors.
template <int kWidth>
struct WarpQueries {
  TileRows<kWidth> rows;
  int first_row;
  float scale[2];
};

// Processes the rows of a tile, which are those from `row` on.
template <int kWidth>
__device__ __forceinline__ void attend_tile(PackedWalk<kWidth>& walk, const WarpQueries<kWidth>& queries,
                                            const LevelTile<kWidth>& tile, int row, const Sight& sight) {
  constexpr int kSteps = kWidth / 16;
  const int column = to_int(threadIdx.x) % 4 * 2;
  Sums scores[kTileRows / 8] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Fragment q = queries.rows.queries(queries.first_row, step);
    const uint4 left{q.at[0], q.at[1], q.at[2], q.at[3]};
#pragma unroll
    for (int n = 0; n < kTileRows / 16; ++n) {
      const Fragment right = tile.keys.keys(n * 16, step);
      multiply_add_f16(scores[2 * n], left, right.at[0], right.at[1]);
      multiply_add_f16(scores[2 * n + 1], left, right.at[2], right.at[3]);
    }
  }
  const bool whole = sight.whole(row, kTileRows);
#pragma unroll
  for (int n = 0; n < kTileRows / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = n * 8 + column + i % 2;
      const bool seen = whole || sight.sees(i / 2, row + at);
      scores[n].at[i] = seen ? scores[n].at[i] * (queries.scale[i / 2] * tile.columns[at].x) : -INFINITY;
    }
  walk.weigh(scores, tile.columns);
#pragma unroll
  for (int k = 0; k < kTileRows / 16; ++k) {
    const Sums& a = scores[2 * k];
    const Sums& b = scores[2 * k + 1];
    const uint4 left{half_pair(a.at[0], a.at[1]), half_pair(a.at[2], a.at[3]), half_pair(b.at[0], b.at[1]),
                     half_pair(b.at[2], b.at[3])};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const Fragment right = tile.values.values(k * 16, step);
      multiply_add_f16(walk.sums[2 * step], left, right.at[0], right.at[1]);
      multiply_add_f16(walk.sums[2 * step + 1], left, right.at[2], right.at[3]);
    }
  }
}

// Writes the sums of the warp's queries, divided by their totals, to the output.
template <int kWidth>
__device__ __forceinline__ void store_walk(const AttendCall& attend, const TokenTile& tile, int first_row,
                                           int first_head, int heads, const PackedWalk<kWidth>& walk) {
  const int lane = to_int(threadIdx.x) % kWarp;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float inverse = 1 / quad_sum(walk.total[h]);
    const int r = first_row + lane / 4 + h * 8;
    const int token = tile.begin + r / attend.head_tile;
    const int head = r % attend.head_tile;
    if (token >= tile.end || head >= heads) continue;
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        attend.out.set(token, first_head + head, i * 8 + lane % 4 * 2 + j,
                       walk.sums[i].at[2 * h + j] * inverse);
  }
}

// The factor of scores, besides a query's factor and a key's norm; log2(e) is for powers of 2.
__device__ __forceinline__ float level_scale(const PackedCall& call) {
  constexpr float kLog2E = 1.4426950408889634f;
  return call.attend.scale * call.keys.root * kLog2E;
}

// A block's work: some tokens, all query heads of one KV head in the tile, and the rows they see.
struct PackedBlock {
  TokenTile tile;
  BlockHeads heads;
  TileWalk walked;
};

// A block's loop over its tiles, common to both kernels. fetch(index) starts to copy a tile; tiles(index)
// makes its levels readable to the block and returns where they are. Prefetched data does not overwrite
// those.
template <int kWidth, class Fetch, class Tiles>
__device__ __forceinline__ void walk_tiles(const PackedCall& call, const PackedBlock& block,
                                           const TileRows<kWidth>& queries, float* factors, Fetch&& fetch,
                                           Tiles&& tiles) {
  const auto& [tile, heads, walked] = block;
  fetch(0);
  load_queries(call, tile, heads.first_head, heads.heads, queries, factors);
  __syncthreads();
  const int lane = to_int(threadIdx.x) % kWarp;
  const int first_row = to_int(threadIdx.x) / kWarp * 16;
  Sight sight(call.attend, tile, first_row);
  const float unit_scale = level_scale(call);
  const WarpQueries<kWidth> own{
      queries,
      first_row,
      {unit_scale * factors[first_row + lane / 4], unit_scale * factors[first_row + lane / 4 + 8]}};
  PackedWalk<kWidth> walk;
  walk.reset();
  for (int index = 0; index < walked.tiles(); ++index) {
    const int row = walked.row(index);
    wait_for_copies<0>();
    __syncthreads();
    const LevelTile<kWidth> levels = tiles(index);
    if (index + 1 < walked.tiles()) fetch(index + 1);
    if (index == walked.cached_tiles) sight = Sight(call.attend, tile, first_row, true);
    if (sight.any(row, kTileRows)) attend_tile(walk, own, levels, row, sight);
  }
  store_walk(call.attend, tile, first_row, heads.first_head, heads.heads, walk);
}

}  // namespace sluice::backend::cuda::attention::packed
