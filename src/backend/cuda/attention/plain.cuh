// out = softmax(scale * q kT) v in F32 for every element type and width: where no faster kernel applies, and
// for the 1e-5 accuracy of F32 activations.
//
// A block has 16 query rows of one KV head and iterates over the cache 32 rows at a time. Scores: a thread
// computes one row for 4 queries; keys pass through shared memory 64 columns at a time. Softmax: a warp has 4
// queries. Values: a thread has some columns, reads them directly from memory, and keeps their sums in shared
// memory. Grid: token tiles, KV heads x head tiles x parts of kMaxColumns value columns, lanes of splits.
// Bytes: every visible row once per block. Expected error: 1e-6.
#pragma once

#include "backend/cuda/attention/attend.cuh"
#include "backend/cuda/device/warp.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

inline constexpr int kPlainQueries = 16;
inline constexpr int kPlainRows = 32;
inline constexpr int kPlainChunk = 64;
inline constexpr int kPlainThreads = 128;
inline constexpr int kPlainColumns = 1024;

// Queries in one or two pieces, matching keys in one or two pieces.
struct PlainQueries {
  HeadRows pieces[2];

  __host__ __device__ int width() const { return pieces[0].width + pieces[1].width; }
  __device__ __forceinline__ float at(long long token, int head, int i) const {
    return i < pieces[0].width ? pieces[0].at(token, head, i)
                               : pieces[1].at(token, head, i - pieces[0].width);
  }
};

// Keys and Values have of(tile, kv_head), whose page_of(row).at(row, i) is an element.
template <class Keys, class Values>
struct PlainCall {
  AttendCall attend;
  PlainQueries queries;
  Keys keys;
  Values values;
};

struct PlainShared {
  float keys[kPlainRows][kPlainChunk + 4];
  float weights[kPlainRows][kPlainQueries + 4];
  float factors[kPlainQueries];
  float2 scales[kPlainQueries];  // maximum and total, at the end
};

// Rows [first, first + count) of a cache, of which the first `skip` are visible to no query.
struct PlainTile {
  long long first;
  int count;
  int skip;
};

// The scores of the tile's row `lane` for the warp's 4 queries.
template <class KeyRows>
__device__ __forceinline__ void plain_scores(PlainShared& shared, const float* queries, int width,
                                             const KeyRows& keys, const PlainTile& tile, float (&dots)[4]) {
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  const int padded = divide_up(width, kPlainChunk) * kPlainChunk;
  float4 sums[4] = {};
  for (int chunk = 0; chunk < padded; chunk += kPlainChunk) {
    __syncthreads();
#pragma unroll 8
    for (int i = threadIdx.x; i < kPlainRows * kPlainChunk; i += kPlainThreads) {
      const int r = i / kPlainChunk;
      const int column = chunk + i % kPlainChunk;
      shared.keys[r][i % kPlainChunk] =
          r < tile.count && column < width ? keys.at(tile.first + r, column) : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kPlainChunk; i += 4) {
      const float4 k = *reinterpret_cast<const float4*>(&shared.keys[lane][i]);
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const float4 q = *reinterpret_cast<const float4*>(queries + (warp * 4 + m) * padded + chunk + i);
        sums[m].x += q.x * k.x;
        sums[m].y += q.y * k.y;
        sums[m].z += q.z * k.z;
        sums[m].w += q.w * k.w;
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 4; ++m) dots[m] = (sums[m].x + sums[m].y) + (sums[m].z + sums[m].w);
}

// The columns of the output that a block computes.
struct PlainColumns {
  int first;
  int count;
};

// sums[m][column] = sums[m][column] * factor[m] + sum over rows of weight * value.
template <class ValueRows>
__device__ __forceinline__ void plain_values(const PlainShared& shared, const ValueRows& values,
                                             const PlainTile& tile, const PlainColumns& columns,
                                             float* sums) {
  for (int column = threadIdx.x; column < columns.count; column += kPlainThreads) {
    float own[kPlainQueries];
#pragma unroll
    for (int m = 0; m < kPlainQueries; ++m) own[m] = sums[m * columns.count + column] * shared.factors[m];
#pragma unroll 8
    for (int r = tile.skip; r < tile.count; ++r) {
      const float value = values.at(tile.first + r, columns.first + column);
#pragma unroll
      for (int m = 0; m < kPlainQueries; m += 4) {
        const float4 weight = *reinterpret_cast<const float4*>(&shared.weights[r][m]);
        own[m] += weight.x * value;
        own[m + 1] += weight.y * value;
        own[m + 2] += weight.z * value;
        own[m + 3] += weight.w * value;
      }
    }
#pragma unroll
    for (int m = 0; m < kPlainQueries; ++m) sums[m * columns.count + column] = own[m];
  }
}

// Computes the queries of one tile. `memory` holds them and then their sums.
template <bool kSplit, class Keys, class Values>
__device__ __forceinline__ void attend_plain_tile(const PlainCall<Keys, Values>& call, const TokenTile& tile,
                                                  PlainShared& shared, float* memory) {
  const AttendCall& attend = call.attend;
  const int value_parts = divide_up(attend.out.width, kPlainColumns);
  const int first_column = to_int(blockIdx.y) % value_parts * kPlainColumns;
  const int columns = min(attend.out.width - first_column, kPlainColumns);
  const int head_part = to_int(blockIdx.y) / value_parts;
  const int kv_head = head_part / attend.head_tiles();
  const int first_head = head_part % attend.head_tiles() * attend.head_tile;
  const int heads = min(attend.head_tile, attend.group - first_head);

  const int width = call.queries.width();
  const int padded = divide_up(width, kPlainChunk) * kPlainChunk;
  float* queries = memory;
  float* sums = queries + kPlainQueries * padded;
  for (int i = threadIdx.x; i < kPlainQueries * padded; i += kPlainThreads) {
    const int m = i / padded;
    const int token = tile.begin + m / attend.head_tile;
    const bool inside = token < tile.end && m % attend.head_tile < heads && i % padded < width;
    const int head = kv_head * attend.group + first_head + m % attend.head_tile;
    queries[i] = inside ? call.queries.at(token, head, i % padded) : 0.0f;
  }
  const auto keys = call.keys.of(tile, kv_head);
  const auto values = call.values.of(tile, kv_head);
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  const long long low = tile.first(tile.begin);
  const long long high = tile.last(tile.end - 1) + 1;
  const long long split_rows = kSplit ? attend.split_rows : high;
  for (long long split = blockIdx.z; split * split_rows < high; split += gridDim.z) {
    const long long split_end = min((split + 1) * split_rows, high);
    if (split_end <= low) continue;
    float maximum[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    float total[4] = {};
    for (int i = threadIdx.x; i < columns; i += kPlainThreads)
      for (int m = 0; m < kPlainQueries; ++m) sums[m * columns + i] = 0;
    const long long from = max(split * split_rows, low) / kPlainRows * kPlainRows;
    for (long long row = from; row < split_end; row += kPlainRows) {
      const PlainTile rows{row, to_int(min(split_end - row, static_cast<long long>(kPlainRows))),
                           to_int(max(low - row, 0LL))};
      float scores[4];
      plain_scores(shared, queries, width, keys.page_of(max(row, low)), rows, scores);
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const int token = tile.begin + (warp * 4 + m) / attend.head_tile;
        const bool seen =
            row + lane <= tile.last(token) && row + lane >= tile.first(token) && lane < rows.count;
        const float score = seen ? scores[m] * attend.scale : -INFINITY;
        const float larger = fmaxf(maximum[m], warp_max(score));
        const bool none = larger == -INFINITY;
        const float weight = seen ? expf(score - larger) : 0.0f;
        const float factor = none ? 1.0f : expf(maximum[m] - larger);
        total[m] = total[m] * factor + warp_sum(weight);
        maximum[m] = larger;
        shared.weights[lane][warp * 4 + m] = weight;
        if (lane == 0) shared.factors[warp * 4 + m] = factor;
      }
      __syncthreads();
      plain_values(shared, values.page_of(max(row, low)), rows, {first_column, columns}, sums);
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 4; ++m)
      if (lane == 0) shared.scales[warp * 4 + m] = make_float2(maximum[m], total[m]);
    __syncthreads();
    for (int m = 0; m < kPlainQueries; ++m) {
      const int token = tile.begin + m / attend.head_tile;
      if (token >= tile.end || m % attend.head_tile >= heads) continue;
      const int head = kv_head * attend.group + first_head + m % attend.head_tile;
      const long long to = kSplit ? attend.partials.index(blockIdx.x, attend.heads, head, to_int(split)) : 0;
      for (int i = threadIdx.x; i < columns; i += kPlainThreads) {
        if constexpr (kSplit)
          attend.partials.sums[to * attend.partials.width + first_column + i] = sums[m * columns + i];
        else
          attend.out.set(token, head, first_column + i, sums[m * columns + i] / shared.scales[m].y);
      }
      if (kSplit && threadIdx.x == 0 && first_column == 0) attend.partials.scales[to] = shared.scales[m];
    }
  }
}

template <class Keys, class Values, bool kSplit>
__global__ void __launch_bounds__(kPlainThreads)
    attend_plain(const __grid_constant__ PlainCall<Keys, Values> call) {
  extern __shared__ float4 dynamic[];
  __shared__ PlainShared shared;
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const int tokens_per_tile = kSplit ? 1 : kPlainQueries / attend.head_tile;
  TokenTile tile = kSplit ? tile_of_token(attend, attend.first_token + to_int(blockIdx.x))
                          : tile_at(attend, tokens_per_tile, to_int(blockIdx.x));
  // Tokens of different blocks (fresh_rows.h) read different rows unquantised, so they are processed
  // separately.
  for (const int end = tile.end; tile.begin < end; tile.begin = tile.end) {
    const auto left = to_int(ops::kFreshBlock - tile.last(tile.begin) % ops::kFreshBlock);
    tile.end = attend.own_rows ? min(end, tile.begin + left) : end;
    attend_plain_tile<kSplit>(call, tile, shared, reinterpret_cast<float*>(dynamic));
    __syncthreads();
  }
}

// Prefill or decode. `scratch` is null, or has SplitSizes(call.attend).bytes.
template <class Keys, class Values>
void run_plain(Context& context, PlainCall<Keys, Values> call, std::byte* scratch = nullptr) {
  AttendCall& attend = call.attend;
  attend.head_tile = std::min(attend.group, kPlainQueries);
  const int value_parts = divide_up(attend.out.width, kPlainColumns);
  const int padded = divide_up(call.queries.width(), kPlainChunk) * kPlainChunk;
  const std::size_t shared_bytes =
      sizeof(float) * kPlainQueries * (padded + std::min(attend.out.width, kPlainColumns));
  const auto heads = to_unsigned(attend.kv_heads() * attend.head_tiles() * value_parts);
  if (!context.decode_class(attend.sequences.tokens)) {
    const dim3 blocks(tiles(attend, kPlainQueries / attend.head_tile), heads);
    launch(context, attend_plain<Keys, Values, false>, {blocks, dim3(kPlainThreads), shared_bytes}, call);
    return;
  }
  if (scratch == nullptr) scratch = context.scratch(SplitSizes(attend).bytes);
  attend_in_splits(context, attend, scratch, 4, [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(to_unsigned(tokens), heads, to_unsigned(lanes));
    launch(context, attend_plain<Keys, Values, true>, {blocks, dim3(kPlainThreads), shared_bytes}, call);
  });
}

}  // namespace sluice::backend::cuda::attention
