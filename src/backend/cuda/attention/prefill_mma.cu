// Prefill attention on tensor cores: BF16 queries and caches, head widths 64, 128 and 256.
//
// A block has 128 (or 64) query rows, tokens x heads of one KV head, and iterates over the rows they see 64
// at a time, while the next 64 are copied to the second buffer; a warp has 16 query rows, with their softmax
// and sums in registers. Grid: token tiles, the longest loops first, and KV heads x head tiles. Operations: 4
// D per query row and visible cache row. Scores are exact products with F32 sums; probabilities are rounded
// to BF16.
#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/online_softmax.cuh"
#include "backend/cuda/attention/visible_rows.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

namespace {

constexpr int kRows = 64;  // rows of the cache per step
constexpr float kLog2E = 1.4426950408889634f;

template <int kWidth, int kWarps>
struct Layout {
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kQueries = kWarps * 16;
  static constexpr int kQueryBytes = kQueries * TileRows<kWidth>::kRowBytes;
  static constexpr int kTileBytes = kRows * TileRows<kWidth>::kRowBytes;
  static constexpr int kBytes = kQueryBytes + 4 * kTileBytes;
};

// 64 rows of a cache from `row` on, in shared memory.
template <int kWidth>
struct CacheTile {
  TileRows<kWidth> keys;
  TileRows<kWidth> values;
  int row;
};

// Processes one tile for the warp's 16 queries, which are those from `first_row` on.
template <int kWidth>
__device__ __forceinline__ void attend_tile(SoftmaxSums<kWidth>& walk, const TileRows<kWidth>& queries,
                                            int first_row, const CacheTile<kWidth>& tile, const Sight& sight,
                                            float scale) {
  constexpr int kSteps = kWidth / 16;
  const int column = to_int(threadIdx.x) % 4 * 2;
  Sums scores[kRows / 8] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Fragment left = queries.queries(first_row, step);
#pragma unroll
    for (int n = 0; n < kRows / 16; ++n)
      multiply_add(scores[2 * n], scores[2 * n + 1], left, tile.keys.keys(n * 16, step));
  }
  const bool whole = sight.whole(tile.row, kRows);
#pragma unroll
  for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = tile.row + n * 8 + column + i % 2;
      const bool seen = whole || sight.sees(i / 2, at);
      scores[n].at[i] = seen ? scores[n].at[i] * scale : -INFINITY;
    }
  walk.rescale_sums(walk.weigh(as_floats(scores)));
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    const Fragment weights = round_sums(scores[2 * k], scores[2 * k + 1]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_add(walk.sums[2 * step], walk.sums[2 * step + 1], weights, tile.values.values(k * 16, step));
  }
}

template <int kWidth, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp, kWidth >= 128 ? 1 : 2)
    prefill_kernel(const __grid_constant__ MmaCall call) {
  using Shared = Layout<kWidth, kWarps>;
  constexpr int kThreads = Shared::kThreads;
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const TileRows<kWidth> queries{shared};
  const auto buffer = [&](int i) {
    return TileRows<kWidth>{shared + Shared::kQueryBytes + i * Shared::kTileBytes};
  };
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile =
      tile_at(attend, Shared::kQueries / attend.head_tile, to_int(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const auto [kv_head, first_head, heads] = block_heads(attend);
  const int thread = threadIdx.x;
#pragma unroll 4
  for (int i = thread; i < Shared::kQueries * TileRows<kWidth>::kChunks; i += kThreads) {
    const int r = i / TileRows<kWidth>::kChunks;
    const int chunk = i % TileRows<kWidth>::kChunks;
    const int token = tile.begin + r / attend.head_tile;
    const int head = r % attend.head_tile;
    const bool inside = token < tile.end && head < heads;
    const auto* from = static_cast<const Bf16*>(call.queries.data);
    if (inside)
      from += token * call.queries.token_stride + (first_head + head) * call.queries.head_stride + chunk * 8;
    copy_16(queries.at(r, chunk), from, inside);
  }
  const FetchRows keys(call.keys, tile, kv_head);
  const FetchRows values(call.values, tile, kv_head);
  const long long begin = keys.low / kRows * kRows;
  int entry = tile.pages.entry(keys.low);  // of the rows that are fetched next
  const auto fetch = [&](long long row, int stage) {
    const int page = tile.pages.page(entry);
    keys.template fetch<kWidth, kRows, kThreads>(buffer(2 * stage), row, page, thread);
    values.template fetch<kWidth, kRows, kThreads>(buffer(2 * stage + 1), row, page, thread);
    close_copies();
    if (row + kRows < keys.high) entry = tile.pages.entry(row + kRows);
  };
  const int first_row = thread / kWarp * 16;
  const Sight sight(attend, tile, first_row);
  SoftmaxSums<kWidth> walk;
  walk.reset();
  fetch(begin, 0);
  int stage = 0;
  for (long long row = begin; row < keys.high; row += kRows, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (row + kRows < keys.high) fetch(row + kRows, stage ^ 1);
    if (sight.any(row, kRows))
      attend_tile<kWidth>(walk, queries, first_row, {buffer(2 * stage), buffer(2 * stage + 1), to_int(row)},
                          sight, attend.scale * kLog2E);
  }

  const int lane = thread % kWarp;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float inverse = 1 / quad_sum(walk.total[h]);
    const int r = first_row + lane / 4 + h * 8;
    const int token = tile.begin + r / attend.head_tile;
    const int head = r % attend.head_tile;
    if (token >= tile.end || head >= heads) continue;
    auto* out = static_cast<Bf16*>(const_cast<void*>(attend.out.data)) + token * attend.out.token_stride +
                (first_head + head) * attend.out.head_stride + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i)
      *reinterpret_cast<std::uint32_t*>(out + i * 8) =
          pack_pair(walk.sums[i].at[2 * h] * inverse, walk.sums[i].at[2 * h + 1] * inverse);
  }
}

template <int kWidth, int kWarps>
void launch_prefill(Context& context, MmaCall call) {
  using Shared = Layout<kWidth, kWarps>;
  call.attend.head_tile = std::min(call.attend.group, Shared::kQueries);
  const dim3 blocks(tiles(call.attend, Shared::kQueries / call.attend.head_tile),
                    to_unsigned(call.attend.kv_heads() * call.attend.head_tiles()));
  launch(context, prefill_kernel<kWidth, kWarps>, {blocks, dim3(Shared::kThreads), Shared::kBytes}, call);
}

template <int kWidth, int kWarps>
bool fits(const Context& context) {
  return context.device().shared_bytes_per_block >= to_size(Layout<kWidth, kWarps>::kBytes);
}

}  // namespace

bool prefill_mma_supports(const Context& context, const MmaCall& call) {
  bool result = call.whole_chunks();
  if (result) with_mma_width(call.queries.width, [&]<int kWidth>() { result = fits<kWidth, 4>(context); });
  return result;
}

void attend_prefill_mma(Context& context, const MmaCall& call) {
  // Half as many rows per block if larger blocks would leave multiprocessors idle; the bits are the same.
  const long long rows = static_cast<long long>(call.attend.sequences.tokens) * call.attend.heads;
  const bool large = rows / 128 >= context.device().multiprocessors;
  with_mma_width(call.queries.width, [&]<int kWidth>() {
    if (large && fits<kWidth, 8>(context))
      launch_prefill<kWidth, 8>(context, call);
    else
      launch_prefill<kWidth, 4>(context, call);
  });
}

}  // namespace sluice::backend::cuda::attention
