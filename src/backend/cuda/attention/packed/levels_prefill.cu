// Prefill attention from packed caches, with every row converted to F16 levels once for all queries of the
// call.
//
// If many tokens see the same rows, attend_packed_prefill spends a third of its time on converting the same
// codes for every 128 queries. Here one pass writes the levels of all visible rows to scratch memory,
// [rows,KH,D], with what scores and weights need of the norms; then blocks iterate over levels as over a BF16
// cache, prefetching the next 64 rows. The products are the same in the same order (packed_tile.cuh), and so
// are the bits. Bytes: codes once, levels written once and read once per block.
#include "backend/cuda/attention/packed/packed_tile.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

namespace {

template <int kWidth>
struct Layout {
  static constexpr int kTileBytes = kTileRows * TileRows<kWidth>::kRowBytes;
  static constexpr int kTilesAt = kTileQueries * TileRows<kWidth>::kRowBytes;  // keys and values, two stages
  static constexpr int kColumnsAt = kTilesAt + 4 * kTileBytes;                 // a float2 per row, two stages
  static constexpr int kFactorsAt = kColumnsAt + 2 * kTileRows * 8;            // one per query
  static constexpr int kBytes = kFactorsAt + kTileQueries * 4;
};

struct UnpackCall {
  PackedCache cache;
  SequencePages pages;
  long long ring_start;
  int first;
  int rows;
  int kv_heads;
  bool values;  // a negative norm negates the levels
  __half* levels;
};

// Grid: 8 levels per thread, KV heads.
template <int kBits, int kWidth>
__global__ void __launch_bounds__(kTileThreads) unpack_rows(const __grid_constant__ UnpackCall call) {
  constexpr int kChunks = kWidth / 8;
  using Codes = std::conditional_t<kBits == 4, std::uint32_t, uint2>;
  extern __shared__ uint4 dynamic[];
  char* table = reinterpret_cast<char*>(dynamic);
  fill_level_table<kBits>(call.cache.levels, table);
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  const char* own = table + threadIdx.x % kWarp * 4;
  const int head = blockIdx.y;
  const PackedRows all_rows = call.cache.of(0, head, call.ring_start, call.pages);
  for (int i = call.first * kChunks + to_int(blockIdx.x * kTileThreads + threadIdx.x);
       i < call.rows * kChunks; i += to_int(gridDim.x) * kTileThreads) {
    const int row = i / kChunks;
    const PackedRows rows = all_rows.page_of(row);
    const long long slot = rows.slot_of(row);
    const auto codes = reinterpret_cast<const Codes*>(rows.codes + slot * rows.stride)[i % kChunks];
    const std::uint32_t flip = call.values && rows.norms[slot] < 0 ? 0x80008000u : 0u;
    const uint4 levels = levels_of(own, codes);
    reinterpret_cast<uint4*>(
        call.levels)[(static_cast<long long>(row) * call.kv_heads + head) * kChunks + i % kChunks] = {
        levels.x ^ flip, levels.y ^ flip, levels.z ^ flip, levels.w ^ flip};
  }
}

// For each cached row, the key's norm and log2 of the value's norm.
__global__ void join_norms(const __grid_constant__ PackedCall call, const __grid_constant__ LevelRows to,
                           long long ring_start) {
  wait_for_inputs();
  allow_successor();
  const int row = to.first + to_int(blockIdx.x * blockDim.x + threadIdx.x);
  const int head = blockIdx.y;
  if (row >= to.rows) return;
  const SequencePages& pages = call.attend.pages.first;
  const PackedRows keys = call.keys.of(0, head, ring_start, pages).page_of(row);
  const PackedRows values = call.values.of(0, head, ring_start, pages).page_of(row);
  to.columns.data[head * to.columns.stride + row] = make_float2(
      keys.norms[keys.slot_of(row)], norm_exponent(values.norms[values.slot_of(row)] * values.root));
}

// The same for the rows that the call itself passes.
__global__ void join_own_norms(const __grid_constant__ PackedCall call,
                               const __grid_constant__ LevelRows to) {
  wait_for_inputs();
  allow_successor();
  const int token = blockIdx.x * blockDim.x + threadIdx.x;
  const int head = blockIdx.y;
  if (token >= call.attend.sequences.tokens) return;
  const int own = token * to_int(gridDim.y) + head;
  to.own_columns.data[head * to.own_columns.stride + to.first_own - to.own_base() + token] =
      make_float2(call.fresh_keys.norms[own], norm_exponent(call.fresh_values.norms[own] * call.values.root));
}

template <int kWidth>
__global__ void __launch_bounds__(kTileThreads, 1)
    levels_prefill_kernel(const __grid_constant__ PackedCall call, const __grid_constant__ LevelRows levels) {
  using Shared = Layout<kWidth>;
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const TileRows<kWidth> queries{shared};
  const auto buffer = [&](int i) {
    return TileRows<kWidth>{shared + Shared::kTilesAt + i * Shared::kTileBytes};
  };
  auto* columns = reinterpret_cast<float2*>(shared + Shared::kColumnsAt);
  auto* factors = reinterpret_cast<float*>(shared + Shared::kFactorsAt);
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile = tile_at(attend, kTileQueries / attend.head_tile, to_int(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const int thread = threadIdx.x;
  const BlockHeads heads = block_heads(attend);
  const int kv_head = heads.kv_head;
  const TileWalk walked(tile);
  // `first` is row 0 of the cached rows or of the call's own.
  const auto rows_of = [&](const __half* first, bool own) {
    FetchRows rows;
    rows.data = reinterpret_cast<const char*>(first + kv_head * kWidth);
    rows.stride = attend.kv_heads() * TileRows<kWidth>::kRowBytes;
    rows.low = own ? walked.own_low : walked.low;
    rows.high = own ? walked.high : walked.cached_high;
    return rows;
  };
  FetchRows keys = rows_of(levels.keys, false);
  FetchRows values = rows_of(levels.values, false);
  const float2* norms = levels.columns.data + kv_head * levels.columns.stride;
  const auto fetch = [&](int index, int stage) {
    const int row = walked.row(index);
    if (index == walked.cached_tiles) {
      const long long skipped = tile.base * attend.kv_heads() * kWidth;
      keys = rows_of(call.fresh_keys.levels - skipped, true);
      values = rows_of(call.fresh_values.levels - skipped, true);
      norms = levels.own_columns.data + kv_head * levels.own_columns.stride - levels.own_base();
    }
    keys.template fetch<kWidth, kTileRows, kTileThreads>(buffer(2 * stage), row, 0, thread);
    values.template fetch<kWidth, kTileRows, kTileThreads>(buffer(2 * stage + 1), row, 0, thread);
    if (thread < kTileRows / 2)
      copy_16(columns + stage * kTileRows + 2 * thread, norms + row + 2 * thread, true);
    close_copies();
  };
  walk_tiles(
      call, {tile, heads, walked}, queries, factors, [&](int index) { fetch(index, index % 2); },
      [&](int index) -> LevelTile<kWidth> {
        const int stage = index % 2;
        return {buffer(2 * stage), buffer(2 * stage + 1), columns + stage * kTileRows};
      });
}

template <int kBits, int kWidth>
void unpack(Context& context, const PackedCall& call, const LevelRows& to, long long ring_start,
            bool values) {
  const UnpackCall unpack{values ? call.values : call.keys,
                          call.attend.pages.first,
                          ring_start,
                          to.first,
                          to.rows,
                          call.attend.kv_heads(),
                          values,
                          values ? to.values : to.keys};
  const int blocks = std::min(divide_up((to.rows - to.first) * (kWidth / 8), kTileThreads),
                              4 * context.device().multiprocessors);
  if (blocks <= 0) return;
  launch(context, unpack_rows<kBits, kWidth>,
         {dim3(to_unsigned(blocks), to_unsigned(unpack.kv_heads)), dim3(kTileThreads), kLevelTableBytes},
         unpack);
}

}  // namespace

void attend_levels_prefill(Context& context, const PackedCall& given, const LevelRows& levels,
                           long long ring_start) {
  PackedCall call = given;
  call.attend.head_tile = std::min(call.attend.group, kTileQueries);
  const auto kv_heads = to_unsigned(call.attend.kv_heads());
  with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
    unpack<kKeyBits, kWidth>(context, call, levels, ring_start, false);
    unpack<kValueBits, kWidth>(context, call, levels, ring_start, true);
    const auto norm_grid = [&](int rows) {
      return Grid{dim3(to_unsigned(divide_up(rows, kTileThreads)), kv_heads), dim3(kTileThreads)};
    };
    if (levels.rows > levels.first)
      launch(context, join_norms, norm_grid(levels.rows - levels.first), call, levels, ring_start);
    if (call.attend.own_rows)
      launch(context, join_own_norms, norm_grid(call.attend.sequences.tokens), call, levels);
    const dim3 blocks(tiles(call.attend, kTileQueries / call.attend.head_tile),
                      kv_heads * to_unsigned(call.attend.head_tiles()));
    launch(context, levels_prefill_kernel<kWidth>, {blocks, dim3(kTileThreads), Layout<kWidth>::kBytes}, call,
           levels);
  });
}

}  // namespace sluice::backend::cuda::attention::packed
