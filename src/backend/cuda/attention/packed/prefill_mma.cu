// Prefill attention from 4- and 8-bit TurboQuant caches on tensor cores: BF16 queries, widths 128 and 256.
//
// A block has 128 query rows, tokens x heads of one KV head, and iterates over the logical rows they see 64
// at a time (packed_tile.cuh): codes are copied to shared memory while the previous rows are used, and all
// threads convert them to F16 levels once for all queries. Grid: token tiles, the longest loops first, and KV
// heads x head tiles. Operations: 4 D per query row and visible cache row. The error is about 3e-4 before the
// output is rounded.
#include "backend/cuda/attention/packed/packed_tile.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

namespace {

template <int kKeyBits, int kValueBits, int kWidth>
struct Layout {
  static constexpr int kKeyBytes = kWidth * kKeyBits / 8;
  static constexpr int kValueBytes = kWidth * kValueBits / 8;
  static constexpr int kTables = kKeyBits == kValueBits ? 1 : 2;
  static constexpr int kKeyAt = kTileQueries * kWidth * 2;
  static constexpr int kValueAt = kKeyAt + kTileRows * kWidth * 2;
  static constexpr int kKeyCodesAt = kValueAt + kTileRows * kWidth * 2;
  static constexpr int kValueCodesAt = kKeyCodesAt + kTileRows * kKeyBytes;
  static constexpr int kNormsAt = kValueCodesAt + kTileRows * kValueBytes;  // of keys, then of values
  static constexpr int kColumnsAt = kNormsAt + 2 * kTileRows * 4;           // a float2 per row
  static constexpr int kFactorsAt = kColumnsAt + kTileRows * 8;             // one per query
  static constexpr int kTableAt = kFactorsAt + kTileQueries * 4;
  static constexpr int kBytes = kTableAt + kTables * kLevelTableBytes;
};

// Copies the codes of rows [begin, end) from `row` on.
template <int kRowBytes>
__device__ __forceinline__ void fetch_codes(const PackedRows& rows, long long row, int begin, int end,
                                            char* to) {
  constexpr int kChunks = kRowBytes / 16;
#pragma unroll 4
  for (int i = threadIdx.x; i < kTileRows * kChunks; i += kTileThreads) {
    const int r = i / kChunks;
    if (r >= begin && r < end)
      copy_16(to + i * 16, rows.codes + rows.slot_of(row + r) * rows.stride + i % kChunks * 16, true);
  }
}

// Rows [begin, end) of a tile that are already levels.
struct FreshTile {
  const __half* first;  // address of the tile's row 0, even if that is not one of them
  long long stride;
  int begin;
  int end;
};

template <int kWidth>
__device__ __forceinline__ void copy_rows(const FreshTile& fresh, const TileRows<kWidth>& to) {
  constexpr int kChunks = kWidth / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < kTileRows * kChunks; i += kTileThreads) {
    const int row = i / kChunks;
    const bool inside = row >= fresh.begin && row < fresh.end;
    *reinterpret_cast<uint4*>(to.at(row, i % kChunks)) =
        inside ? *reinterpret_cast<const uint4*>(fresh.first + row * fresh.stride + i % kChunks * 8)
               : uint4{};
  }
}

// Converts codes to levels, 8 at a time; rows with a negative norm get negated levels.
template <int kBits, int kWidth>
__device__ __forceinline__ void decode_rows(const char* codes, const float* norms, const char* own,
                                            const TileRows<kWidth>& to) {
  constexpr int kChunks = kWidth / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < kTileRows * kChunks; i += kTileThreads) {
    const int row = i / kChunks;
    using Codes = std::conditional_t<kBits == 4, std::uint32_t, uint2>;
    const uint4 levels = levels_of(own, reinterpret_cast<const Codes*>(codes)[i]);
    const std::uint32_t flip = norms != nullptr && norms[row] < 0 ? 0x80008000u : 0u;
    *reinterpret_cast<uint4*>(to.at(row, i % kChunks)) = {levels.x ^ flip, levels.y ^ flip, levels.z ^ flip,
                                                          levels.w ^ flip};
  }
}

template <int kKeyBits, int kValueBits, int kWidth>
__global__ void __launch_bounds__(kTileThreads, 1)
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
  const TokenTile tile = tile_at(attend, kTileQueries / attend.head_tile, to_int(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const int thread = threadIdx.x;
  const int lane = thread % kWarp;
  const BlockHeads heads = block_heads(attend);
  const int kv_head = heads.kv_head;
  const PackedRows all_keys = call.keys.of(tile, kv_head);
  const PackedRows all_values = call.values.of(tile, kv_head);
  const TileWalk walked(tile);
  // The call's own row r is its token r - base.
  const int base = to_int(tile.base);
  const int kv_heads = attend.kv_heads();
  const auto fresh_tile = [&](const FreshLevels& fresh, int row) -> FreshTile {
    const long long stride = static_cast<long long>(kv_heads) * kWidth;
    return {fresh.levels + (row - base) * stride + kv_head * kWidth, stride, max(walked.own_low - row, 0),
            min(walked.high - row, kTileRows)};
  };
  int entry = walked.cached_tiles > 0 ? tile.pages.entry(walked.low) : 0;  // of the rows fetched next
  const auto fetch = [&](int index) {
    const int row = walked.row(index);
    const float* fresh = thread < kTileRows ? call.fresh_keys.norms : call.fresh_values.norms;
    if (walked.own(index)) {
      const int r = row + thread % kTileRows;
      if (thread < 2 * kTileRows)
        norms[thread] = r >= walked.own_low && r < walked.high
                            ? fresh[static_cast<long long>(r - base) * kv_heads + kv_head]
                            : 0.0f;
      close_copies();
      return;
    }
    const int page = tile.pages.page(entry);
    const PackedRows keys = all_keys.in_page(row, page);
    const PackedRows values = all_values.in_page(row, page);
    const int begin = max(walked.low - row, 0);
    const int end = min(walked.cached_high - row, kTileRows);
    fetch_codes<Shared::kKeyBytes>(keys, row, begin, end, shared + Shared::kKeyCodesAt);
    fetch_codes<Shared::kValueBytes>(values, row, begin, end, shared + Shared::kValueCodesAt);
    if (thread < 2 * kTileRows) {
      const int r = thread % kTileRows;
      const float* from = thread < kTileRows ? keys.norms : values.norms;
      if (r >= begin && r < end) copy_4(norms + thread, from + keys.slot_of(row + r));
    }
    close_copies();
    if (row + kTileRows < walked.cached_high) entry = tile.pages.entry(row + kTileRows);
  };
  const auto tiles = [&](int index) -> LevelTile<kWidth> {
    const int row = walked.row(index);
    if (walked.own(index)) {
      copy_rows(fresh_tile(call.fresh_keys, row), key_tile);
      copy_rows(fresh_tile(call.fresh_values, row), value_tile);
    } else {
      decode_rows<kKeyBits>(shared + Shared::kKeyCodesAt, nullptr, key_table + lane * 4, key_tile);
      decode_rows<kValueBits>(shared + Shared::kValueCodesAt, norms + kTileRows, value_table + lane * 4,
                              value_tile);
    }
    if (thread < kTileRows)
      columns[thread] =
          make_float2(norms[thread], norm_exponent(norms[kTileRows + thread] * all_values.root));
    __syncthreads();
    return {key_tile, value_tile, columns};
  };
  walk_tiles(call, {tile, heads, walked}, queries, factors, fetch, tiles);
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

// A warp per vector: rotates it and scales it by a power of two, which becomes the norm. NaN is only put into
// the norm, because levels are multiplied by a weight of 0 for queries that do not see them.
template <int kWidth>
__global__ void fresh_levels(FreshCall call) {
  constexpr int kCount = kWidth / kWarp;
  wait_for_inputs();
  allow_successor();
  const long long vector = static_cast<long long>(blockIdx.x) * kTileWarps + threadIdx.x / kWarp;
  if (vector >= call.vectors) return;
  const int lane = to_int(threadIdx.x) % kWarp;
  float x[kCount];
#pragma unroll
  for (int r = 0; r < kCount; ++r)
    x[r] = call.tokens.at(vector / call.kv_heads, to_int(vector % call.kv_heads), lane + r * kWarp);
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
         {blocks, dim3(kTileThreads), Layout<kKeyBits, kValueBits, kWidth>::kBytes}, call);
}

}  // namespace

void make_fresh_levels(Context& context, const PackedCall& call, const HeadRows& tokens, long long count,
                       int kv_heads, const FreshLevels& to) {
  const FreshCall fresh{tokens,
                        count * kv_heads,
                        kv_heads,
                        call.signs,
                        call.rotated,
                        const_cast<__half*>(to.levels),
                        const_cast<float*>(to.norms)};
  const Grid grid{dim3(to_unsigned(divide_up<long long>(fresh.vectors, kTileWarps))), dim3(kTileThreads)};
  if (tokens.width == 128)
    launch(context, fresh_levels<128>, grid, fresh);
  else
    launch(context, fresh_levels<256>, grid, fresh);
}

void attend_packed_prefill(Context& context, const PackedCall& given) {
  PackedCall call = given;
  call.attend.head_tile = std::min(call.attend.group, kTileQueries);
  const dim3 blocks(tiles(call.attend, kTileQueries / call.attend.head_tile),
                    to_unsigned(call.attend.kv_heads() * call.attend.head_tiles()));
  with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
    launch_bits<kKeyBits, kValueBits, kWidth>(context, call, blocks);
  });
}

}  // namespace sluice::backend::cuda::attention::packed
