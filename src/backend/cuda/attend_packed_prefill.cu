// Prefill attention from 4- and 8-bit TurboQuant caches on tensor cores: BF16 queries, widths 128 and 256.
//
// A block has 128 query rows, tokens x heads of one KV head, which it rotates once to F16, and walks the
// logical rows they see 64 at a time: codes arrive in shared memory while the rows before are used, and all
// threads turn them into F16 levels once for all queries. Norms do not touch levels: a key's norm
// scales its score, a value's norm joins the weight as 2^(score + log2 norm), its sign the levels.
// Grid: token tiles, the longest walks first, and KV heads x head tiles. Operations: 4 D a query row and
// cache row in sight. Error about 3e-4 before the output's rounding.
#include "backend/cuda/attend_mma.cuh"
#include "backend/cuda/attend_packed.h"
#include "backend/cuda/attend_sight.cuh"
#include "backend/cuda/packed_format.cuh"
#include "backend/cuda/rotation.cuh"

namespace sluice::backend::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kQueries = kWarps * 16;
constexpr int kRows = 64;  // of the cache at a time
constexpr float kLog2E = 1.4426950408889634f;

template <int kKeyBits, int kValueBits, int kWidth>
struct Layout {
  static constexpr int kKeyBytes = kWidth * kKeyBits / 8;
  static constexpr int kValueBytes = kWidth * kValueBits / 8;
  static constexpr int kTables = kKeyBits == kValueBits ? 1 : 2;
  static constexpr int kKeyAt = kQueries * kWidth * 2;
  static constexpr int kValueAt = kKeyAt + kRows * kWidth * 2;
  static constexpr int kKeyCodesAt = kValueAt + kRows * kWidth * 2;
  static constexpr int kValueCodesAt = kKeyCodesAt + kRows * kKeyBytes;
  static constexpr int kNormsAt = kValueCodesAt + kRows * kValueBytes;  // of keys, then of values
  static constexpr int kColumnsAt = kNormsAt + 2 * kRows * 4;           // a float2 a row
  static constexpr int kFactorsAt = kColumnsAt + kRows * 8;             // one a query
  static constexpr int kTableAt = kFactorsAt + kQueries * 4;
  static constexpr int kBytes = kTableAt + kTables * kLevelTableBytes;
};

// The block's query rows, rotated and scaled by a power of two each.
template <int kWidth>
__device__ __forceinline__ void load_queries(const PackedCall& call, const TokenTile& tile, int first_head,
                                             int heads, const TileRows<kWidth>& to, float* factors) {
  constexpr int kCount = kWidth / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = threadIdx.x / kWarp; row < kQueries; row += kWarps) {
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

// Codes of rows [begin, end) from `row` on.
template <int kRowBytes>
__device__ __forceinline__ void fetch_codes(const PackedRows& rows, long long row, int begin, int end,
                                            char* to) {
  constexpr int kChunks = kRowBytes / 16;
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int r = i / kChunks;
    if (r >= begin && r < end)
      copy_16(to + i * 16, rows.codes + rows.slot_of(row + r) * rows.stride + i % kChunks * 16, true);
  }
}

// Rows of a tile that are levels already: [begin, end) of its 64.
struct FreshTile {
  const __half* first;  // row 0 of the tile, were it one of them
  long long stride;
  int begin;
  int end;
};

// Codes to levels, 8 at a time; rows with a negative norm take their levels negated.
template <int kBits, int kWidth>
__device__ __forceinline__ void decode_rows(const char* codes, const float* norms, const char* own,
                                            const FreshTile& fresh, const TileRows<kWidth>& to) {
  constexpr int kChunks = kWidth / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks;
    uint4 levels;
    if (row >= fresh.begin) {
      *reinterpret_cast<uint4*>(to.at(row, i % kChunks)) =
          row < fresh.end
              ? *reinterpret_cast<const uint4*>(fresh.first + row * fresh.stride + i % kChunks * 8)
              : uint4{};
      continue;
    }
    if constexpr (kBits == 4) {
      const std::uint32_t word = reinterpret_cast<const std::uint32_t*>(codes)[i];
      levels = {look_up(own, word, 0), look_up(own, word, 1), look_up(own, word, 2), look_up(own, word, 3)};
    } else {
      const uint2 words = reinterpret_cast<const uint2*>(codes)[i];
      levels = {lower_halves(look_up(own, words.x, 0), look_up(own, words.x, 1)),
                lower_halves(look_up(own, words.x, 2), look_up(own, words.x, 3)),
                lower_halves(look_up(own, words.y, 0), look_up(own, words.y, 1)),
                lower_halves(look_up(own, words.y, 2), look_up(own, words.y, 3))};
    }
    const std::uint32_t flip = norms != nullptr && norms[row] < 0 ? 0x80008000u : 0u;
    *reinterpret_cast<uint4*>(to.at(row, i % kChunks)) = {levels.x ^ flip, levels.y ^ flip, levels.z ^ flip,
                                                          levels.w ^ flip};
  }
}

// A warp's softmax: sums and totals in units of 2^maximum.
template <int kWidth>
struct Walk {
  Sums sums[kWidth / 8];
  float maximum[2];
  float total[2];  // of the lane's own rows of the cache

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (Sums& one : sums) one = {};
    maximum[0] = maximum[1] = -INFINITY;
    total[0] = total[1] = 0;
  }

  // Scores (out of sight: -inf) to weights; `exponents` are log2 of the values' norms.
  __device__ __forceinline__ void weigh(Sums (&scores)[kRows / 8], const float2* columns) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
    float base[2];
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float larger = maximum[h];
#pragma unroll
      for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (scores[n].at[2 * h + i] != -INFINITY)
            larger = fmaxf(larger, scores[n].at[2 * h + i] + columns[n * 8 + column + i].y);
      larger = quad_max(larger);
      base[h] = larger == -INFINITY ? 0.0f : larger;
      factor[h] = maximum[h] == larger ? 1.0f : exp2_approx(maximum[h] - base[h]);
      maximum[h] = larger;
      total[h] *= factor[h];
    }
#pragma unroll
    for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float score = scores[n].at[i] - base[i / 2];
        const bool seen = scores[n].at[i] != -INFINITY;
        total[i / 2] += exp2_approx(score);
        scores[n].at[i] = seen ? exp2_approx(score + columns[n * 8 + column + i % 2].y) : 0.0f;
      }
    if (__all_sync(0xffffffffu, factor[0] == 1.0f && factor[1] == 1.0f)) return;
#pragma unroll
    for (Sums& one : sums) {
      one.at[0] *= factor[0];
      one.at[1] *= factor[0];
      one.at[2] *= factor[1];
      one.at[3] *= factor[1];
    }
  }
};

// 64 rows from `row` on for the warp's 16 queries.
template <int kWidth>
__device__ __forceinline__ void attend_tile(Walk<kWidth>& walk, const TileRows<kWidth>& queries,
                                            int first_row, const TileRows<kWidth>& keys,
                                            const TileRows<kWidth>& values, const float2* columns,
                                            const Sight& sight, int row, const float (&scale)[2]) {
  constexpr int kSteps = kWidth / 16;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  Sums scores[kRows / 8] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Fragment q = queries.queries(first_row, step);
    const uint4 left{q.at[0], q.at[1], q.at[2], q.at[3]};
#pragma unroll
    for (int n = 0; n < kRows / 16; ++n) {
      const Fragment right = keys.keys(n * 16, step);
      multiply_add_f16(scores[2 * n], left, right.at[0], right.at[1]);
      multiply_add_f16(scores[2 * n + 1], left, right.at[2], right.at[3]);
    }
  }
  const bool whole = sight.whole(row, kRows);
#pragma unroll
  for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = n * 8 + column + i % 2;
      const bool seen = whole || sight.sees(i / 2, row + at);
      scores[n].at[i] = seen ? scores[n].at[i] * (scale[i / 2] * columns[at].x) : -INFINITY;
    }
  walk.weigh(scores, columns);
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    const Sums& a = scores[2 * k];
    const Sums& b = scores[2 * k + 1];
    const uint4 left{half_pair(a.at[0], a.at[1]), half_pair(a.at[2], a.at[3]), half_pair(b.at[0], b.at[1]),
                     half_pair(b.at[2], b.at[3])};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const Fragment right = values.values(k * 16, step);
      multiply_add_f16(walk.sums[2 * step], left, right.at[0], right.at[1]);
      multiply_add_f16(walk.sums[2 * step + 1], left, right.at[2], right.at[3]);
    }
  }
}

template <int kKeyBits, int kValueBits, int kWidth>
__global__ void __launch_bounds__(kThreads, 1)
    packed_prefill_kernel(const __grid_constant__ PackedCall call) {
  using Shared = Layout<kKeyBits, kValueBits, kWidth>;
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const TileRows<kWidth> queries{shared};
  const TileRows<kWidth> key_tile{shared + Shared::kKeyAt};
  const TileRows<kWidth> value_tile{shared + Shared::kValueAt};
  auto* norms = reinterpret_cast<float*>(shared + Shared::kNormsAt);
  auto* columns = reinterpret_cast<float2*>(shared + Shared::kColumnsAt);
  auto* factors = reinterpret_cast<float*>(shared + Shared::kFactorsAt);
  char* key_table = shared + Shared::kTableAt;
  char* value_table = key_table + (Shared::kTables - 1) * kLevelTableBytes;
  fill_level_table<kKeyBits>(call.keys.levels, key_table);
  if (Shared::kTables == 2) fill_level_table<kValueBits>(call.values.levels, value_table);
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile =
      tile_at(attend, kQueries / attend.head_tile, static_cast<int>(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp;
  const int kv_head = static_cast<int>(blockIdx.y) / attend.head_tiles();
  const int head_in_group = static_cast<int>(blockIdx.y) % attend.head_tiles() * attend.head_tile;
  const int heads = min(attend.head_tile, attend.group - head_in_group);
  const int first_head = kv_head * attend.group + head_in_group;
  const PackedRows keys = call.keys.of(tile.slot, kv_head, tile.ring_start);
  const PackedRows values = call.values.of(tile.slot, kv_head, tile.ring_start);
  const int low = static_cast<int>(tile.first(tile.begin));
  const int high = static_cast<int>(tile.last(tile.end - 1)) + 1;
  // Rows from first_fresh on are tokens, row - base of the call.
  const int base = static_cast<int>(tile.base);
  const int first_fresh =
      call.fresh_keys.levels != nullptr ? base + attend.sequences.begin(tile.sequence) : high;
  const int kv_heads = attend.kv_heads();
  const auto fresh_tile = [&](const FreshLevels& fresh, int row) -> FreshTile {
    const long long stride = static_cast<long long>(kv_heads) * kWidth;
    return {fresh.levels + (row - base) * stride + kv_head * kWidth, stride,
            first_fresh < high ? first_fresh - row : kRows, high - row};
  };
  const auto fetch = [&](int row) {
    const int begin = max(low - row, 0);
    const int end = min(min(high, first_fresh) - row, kRows);
    fetch_codes<Shared::kKeyBytes>(keys, row, begin, end, shared + Shared::kKeyCodesAt);
    fetch_codes<Shared::kValueBytes>(values, row, begin, end, shared + Shared::kValueCodesAt);
    if (thread < 2 * kRows) {
      const int r = thread % kRows;
      const float* from = thread < kRows ? keys.norms : values.norms;
      if (r >= begin && r < end) copy_4(norms + thread, from + keys.slot_of(row + r));
      const float* fresh = thread < kRows ? call.fresh_keys.norms : call.fresh_values.norms;
      if (row + r >= first_fresh && row + r < high)
        norms[thread] = fresh[static_cast<long long>(row + r - base) * kv_heads + kv_head];
    }
    close_copies();
  };
  const int first = low / kRows * kRows;
  fetch(first);
  load_queries(call, tile, first_head, heads, queries, factors);
  __syncthreads();
  const int first_row = thread / kWarp * 16;
  const Sight sight(attend, tile, first_row);
  const float unit_scale = attend.scale * keys.root * kLog2E;
  const float scale[2] = {unit_scale * factors[first_row + lane / 4],
                          unit_scale * factors[first_row + lane / 4 + 8]};
  Walk<kWidth> walk;
  walk.reset();
  for (int row = first; row < high; row += kRows) {
    wait_for_copies<0>();
    __syncthreads();
    decode_rows<kKeyBits>(shared + Shared::kKeyCodesAt, nullptr, key_table + lane * 4,
                          fresh_tile(call.fresh_keys, row), key_tile);
    decode_rows<kValueBits>(shared + Shared::kValueCodesAt, norms + kRows, value_table + lane * 4,
                            fresh_tile(call.fresh_values, row), value_tile);
    if (thread < kRows)
      columns[thread] = make_float2(norms[thread], norm_exponent(norms[kRows + thread] * values.root));
    __syncthreads();
    if (row + kRows < high) fetch(row + kRows);
    if (sight.any(row, kRows))
      attend_tile(walk, queries, first_row, key_tile, value_tile, columns, sight, row, scale);
  }

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

struct FreshCall {
  HeadRows tokens;
  long long vectors;
  int kv_heads;
  const unsigned char* signs;
  bool rotated;
  __half* levels;
  float* norms;
};

// A warp a vector: rotated and scaled by a power of two, which becomes the norm. A NaN goes to the norm
// alone: levels are multiplied by the weight 0 where a query does not see them.
template <int kWidth>
__global__ void fresh_levels(FreshCall call) {
  constexpr int kCount = kWidth / kWarp;
  wait_for_inputs();
  allow_successor();
  const long long vector = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (vector >= call.vectors) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float x[kCount];
#pragma unroll
  for (int r = 0; r < kCount; ++r)
    x[r] = call.tokens.at(vector / call.kv_heads, static_cast<int>(vector % call.kv_heads), lane + r * kWarp);
  const float factor = rotate_query(x, call.signs, call.rotated);
  bool finite = true;
#pragma unroll
  for (int r = 0; r < kCount; ++r) finite &= isfinite(x[r]);
  finite = __all_sync(0xffffffffu, finite);
#pragma unroll
  for (int r = 0; r < kCount; ++r)
    call.levels[vector * kWidth + lane + r * kWarp] = __float2half(finite ? x[r] : 0.0f);
  if (lane == 0) call.norms[vector] = finite ? factor * sqrtf(static_cast<float>(kWidth)) : NAN;
}

template <int kKeyBits, int kValueBits, int kWidth>
void launch_bits(Context& context, const PackedCall& call, const dim3& blocks) {
  launch(context, packed_prefill_kernel<kKeyBits, kValueBits, kWidth>,
         {blocks, dim3(kThreads), Layout<kKeyBits, kValueBits, kWidth>::kBytes}, call);
}

}  // namespace

void make_fresh_levels(Context& context, const HeadRows& tokens, long long count, int kv_heads,
                       const unsigned char* signs, bool rotated, const FreshLevels& to) {
  const FreshCall call{tokens,
                       count * kv_heads,
                       kv_heads,
                       signs,
                       rotated,
                       const_cast<__half*>(to.levels),
                       const_cast<float*>(to.norms)};
  const Grid grid{dim3(static_cast<unsigned>(divide_up<long long>(call.vectors, kWarps))), dim3(kThreads)};
  if (tokens.width == 128)
    launch(context, fresh_levels<128>, grid, call);
  else
    launch(context, fresh_levels<256>, grid, call);
}

void attend_packed_prefill(Context& context, const PackedCall& given) {
  PackedCall call = given;
  call.attend.head_tile = std::min(call.attend.group, kQueries);
  const dim3 blocks(tiles(call.attend, kQueries / call.attend.head_tile),
                    static_cast<unsigned>(call.attend.kv_heads() * call.attend.head_tiles()));
  with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
    launch_bits<kKeyBits, kValueBits, kWidth>(context, call, blocks);
  });
}

}  // namespace sluice::backend::cuda
