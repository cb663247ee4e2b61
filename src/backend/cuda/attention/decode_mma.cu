// Decode attention on tensor cores: BF16 queries and caches, head widths 64, 128 and 256.
//
// A block computes up to 16 query heads of one token and KV head (the rows of a tensor core tile) and loops
// over splits of the cache. Each warp streams its own 16-row pieces of keys and values through a ring buffer
// in shared memory and keeps a softmax of its own; the warps synchronise only at the end of a split, where
// their four results are combined in order. Piece p of a split belongs to warp p % 4. Grid: tokens, KV heads
// x head tiles, lanes of splits. Bytes: every visible row once, and per split the partial results written and
// read. Scores are exact products with F32 sums; probabilities are rounded to BF16.
#include "backend/cuda/attention/mma_tile.cuh"
#include "backend/cuda/attention/online_softmax.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kHeads = 16;
constexpr int kSplitRows = 256;
constexpr int kMostSplits = 128;
constexpr int kPiece = 16;                             // rows
constexpr int kPieces = kSplitRows / kPiece / kWarps;  // per warp and split, before doubling
constexpr int kHalf = 8;                               // query rows combined at a time

template <int kWidth>
struct Layout {
  static constexpr int kAhead = 256 / kWidth > 2 ? 3 : 256 / kWidth;  // units in flight, without the current
  static constexpr int kSlots = 2 * kAhead + 1;
  static constexpr int kSlotBytes = kPiece * TileRows<kWidth>::kRowBytes;
  static constexpr int kJoinStride = kWidth + 8;  // floats
  static constexpr int kRingBytes = kWarps * kSlots * kSlotBytes;
  static constexpr int kQueryBytes = kWidth / 16 * kWarp * to_int(sizeof(Fragment));
  static constexpr int kBytes = kRingBytes + kQueryBytes + kHalf * kJoinStride * 4 + 2 * kWarps * kHeads * 4;
};

// A warp's softmax over its pieces.
template <int kWidth>
struct Stream : SoftmaxSums<kWidth> {
  using SoftmaxSums<kWidth>::sums;
  using SoftmaxSums<kWidth>::maximum;
  using SoftmaxSums<kWidth>::total;

  // Turns the scores of 16 rows into weights, and rescales the previous sums.
  __device__ __forceinline__ void weigh(Sums (&scores)[2], float scale, long long row,
                                        const TokenTile& tile) {
    const int column = to_int(threadIdx.x) % 4 * 2;
    const long long first = tile.first(tile.begin);
    const long long last = tile.last(tile.begin);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = maximum[h];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2].at[2 * h + i % 2];
        const long long at = row + i / 2 * 8 + column + i % 2;
        score = at >= first && at <= last ? score * scale : -INFINITY;
        largest = fmaxf(largest, score);
      }
      largest = quad_max(largest);
      const float base = largest == -INFINITY ? 0.0f : largest;
      const float factor = __expf(maximum[h] - base);
      const bool rescale = factor != 1.0f && maximum[h] != -INFINITY;
      maximum[h] = largest;
      total[h] *= factor;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2].at[2 * h + i % 2];
        score = __expf(score - base);
        total[h] += score;
      }
      if (!__any_sync(0xffffffffu, rescale)) continue;
#pragma unroll
      for (Sums& one : sums) {
        one.at[2 * h] *= factor;
        one.at[2 * h + 1] *= factor;
      }
    }
  }
};

// Shared memory for combining the warps: sums of half the heads, and maxima and totals per warp and head.
struct JoinMemory {
  float* joined;
  float* maxima;
  float* totals;
};

// Combines the four warps' results of one split and writes them.
template <int kWidth>
__device__ __forceinline__ void join(Stream<kWidth>& stream, const JoinMemory& memory, const AttendCall& call,
                                     int split, int first_head, int heads) {
  const auto& [joined, maxima, totals] = memory;
  constexpr int kStride = Layout<kWidth>::kJoinStride;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float total = quad_sum(stream.total[h]);
    if (lane % 4 == 0) {
      maxima[warp * kHeads + h * kHalf + lane / 4] = stream.maximum[h];
      totals[warp * kHeads + h * kHalf + lane / 4] = total;
    }
  }
  __syncthreads();
  const int token = blockIdx.x;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (h * kHalf >= heads) break;
    const int row = h * kHalf + lane / 4;
    float largest = maxima[row];
    for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, maxima[w * kHeads + row]);
    const float factor = __expf(stream.maximum[h] - largest);
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) {
#pragma unroll
        for (int i = 0; i < kWidth / 8; ++i) {
          float2* to = reinterpret_cast<float2*>(joined + lane / 4 * kStride + i * 8 + lane % 4 * 2);
          const float2 before = w == 0 ? make_float2(0, 0) : *to;
          *to = make_float2(before.x + stream.sums[i].at[2 * h] * factor,
                            before.y + stream.sums[i].at[2 * h + 1] * factor);
        }
      }
      __syncthreads();
    }
    const int rows = min(heads - h * kHalf, kHalf);
    for (int i = threadIdx.x; i < rows * (kWidth / 4); i += kThreads) {
      const int r = i / (kWidth / 4);
      const long long to = call.partials.index(token, call.heads, first_head + h * kHalf + r, split);
      reinterpret_cast<float4*>(call.partials.sums + to * kWidth)[i % (kWidth / 4)] =
          *reinterpret_cast<const float4*>(joined + r * kStride + i % (kWidth / 4) * 4);
    }
    if (warp == 0 && lane % 4 == 0 && lane / 4 < rows) {
      float total = 0;
      for (int w = 0; w < kWarps; ++w)
        total += totals[w * kHeads + row] * __expf(maxima[w * kHeads + row] - largest);
      call.partials.scales[call.partials.index(token, call.heads, first_head + row, split)] =
          make_float2(largest, total);
    }
    __syncthreads();
  }
}

// Stores the query heads as left operands, in the order in which the lanes of a warp read them.
template <int kWidth>
__device__ __forceinline__ void load_queries(const HeadRows& from, int token, int first_head, int heads,
                                             uint4* queries) {
  for (int i = threadIdx.x; i < kWidth / 16 * kWarp; i += kThreads) {
    const int lane = i % kWarp;
    const auto* q = static_cast<const Bf16*>(from.data) + token * from.token_stride +
                    first_head * from.head_stride + i / kWarp * 16 + lane % 4 * 2;
    const auto pair = [&](int head, int column) {
      return head < heads ? *reinterpret_cast<const std::uint32_t*>(q + head * from.head_stride + column) : 0;
    };
    queries[i] = {pair(lane / 4, 0), pair(lane / 4 + 8, 0), pair(lane / 4, 8), pair(lane / 4 + 8, 8)};
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2) decode_kernel(const __grid_constant__ MmaCall call) {
  using Shared = Layout<kWidth>;
  constexpr int kSteps = kWidth / 16;
  extern __shared__ uint4 dynamic[];
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  char* shared = reinterpret_cast<char*>(dynamic);
  char* ring = shared + warp * Shared::kSlots * Shared::kSlotBytes;
  auto* queries = reinterpret_cast<uint4*>(shared + Shared::kRingBytes);
  auto* joined = reinterpret_cast<float*>(shared + Shared::kRingBytes + Shared::kQueryBytes);
  float* maxima = joined + kHalf * Shared::kJoinStride;
  const JoinMemory memory{joined, maxima, maxima + kWarps * kHeads};
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile = tile_of_token(attend, attend.first_token + to_int(blockIdx.x));
  if (tile.begin == tile.end) return;
  const auto [kv_head, first_head, heads] = block_heads(attend);
  const FetchRows keys(call.keys, tile, kv_head);
  const FetchRows values(call.values, tile, kv_head);
  const int doublings = attend.doublings(keys.high - 1);
  const int split_rows = kSplitRows << doublings;
  const int pieces = kPieces << doublings;
  const int first_split = to_int(keys.low / split_rows) + to_int(blockIdx.z);
  const int end_split = to_int((keys.high + split_rows - 1) / split_rows);
  const int lanes = gridDim.z;
  const int units = first_split < end_split ? (end_split - first_split + lanes - 1) / lanes * pieces : 0;

  const auto split_of = [&](int unit) { return first_split + (unit / kPieces >> doublings) * lanes; };
  const auto row_of = [&](int unit) {
    const int piece = (unit & (pieces - 1)) * kWarps + warp;
    return static_cast<long long>(split_of(unit)) * split_rows + piece * kPiece;
  };
  const auto in_sight = [&](long long row) { return row + kPiece > keys.low && row < keys.high; };
  const auto entry_of = [&](int unit) {
    return unit < units && in_sight(row_of(unit)) ? tile.pages.entry(max(row_of(unit), keys.low)) : 0;
  };
  int entry = entry_of(0);  // of the unit that is fetched next
  // The ring alternates between keys and values: those of a unit are in slots 2 * unit and the next, modulo
  // kSlots.
  const auto fetch = [&](const FetchRows& rows, int unit, int slot) {
    const long long row = row_of(unit);
    if (unit < units && in_sight(row))
      rows.template fetch<kWidth, kPiece, kWarp>(TileRows<kWidth>{ring + slot * Shared::kSlotBytes}, row,
                                                 tile.pages.page(entry), lane);
    close_copies();
  };
#pragma unroll
  for (int unit = 0; unit < Shared::kAhead; ++unit) {
    fetch(keys, unit, 2 * unit);
    fetch(values, unit, 2 * unit + 1);
    entry = entry_of(unit + 1);
  }
  load_queries<kWidth>(call.queries, tile.begin, first_head, heads, queries);
  __syncthreads();

  Stream<kWidth> stream;
  stream.reset();
  int slot = 0;
  int free_slot = Shared::kSlots - 1;
  const auto advance = [&] {
    __syncwarp();
    free_slot = slot;
    slot = slot + 1 == Shared::kSlots ? 0 : slot + 1;
  };
  for (int unit = 0; unit < units; ++unit) {
    const long long row = row_of(unit);
    Sums scores[2] = {};
    fetch(keys, unit + Shared::kAhead, free_slot);
    wait_for_copies<2 * Shared::kAhead>();
    __syncwarp();
    if (in_sight(row)) {
      const TileRows<kWidth> rows{ring + slot * Shared::kSlotBytes};
      // Not fully unrolled: with a short cache, fetching instructions takes most of the time.
#pragma unroll 1
      for (int four = 0; four < kSteps; four += 4) {
        const TileRows<kWidth> part{rows.data + four / 4 * 128};
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const uint4 q = queries[(four + step) * kWarp + lane];
          multiply_add(scores[0], scores[1], {q.x, q.y, q.z, q.w}, part.keys(0, step));
        }
      }
      stream.weigh(scores, attend.scale, row, tile);
    }
    advance();
    fetch(values, unit + Shared::kAhead, free_slot);
    entry = entry_of(unit + Shared::kAhead + 1);
    wait_for_copies<2 * Shared::kAhead>();
    __syncwarp();
    if (in_sight(row)) {
      const TileRows<kWidth> rows{ring + slot * Shared::kSlotBytes};
      const Fragment weights = round_sums(scores[0], scores[1]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        multiply_add(stream.sums[2 * step], stream.sums[2 * step + 1], weights, rows.values(0, step));
    }
    advance();
    if ((unit & (pieces - 1)) == pieces - 1) {
      join(stream, memory, attend, split_of(unit), first_head, heads);
      stream.reset();
    }
  }
}

}  // namespace

bool decode_mma_supports(const Context& context, const MmaCall& call) {
  bool result = call.whole_chunks();
  if (result)
    with_mma_width(call.queries.width, [&]<int kWidth>() {
      result = context.device().shared_bytes_per_block >= to_size(Layout<kWidth>::kBytes);
    });
  return result;
}

void attend_decode_mma(Context& context, const MmaCall& given) {
  MmaCall call = given;
  call.attend.head_tile = std::min(call.attend.group, kHeads);
  call.attend.split_rows = kSplitRows;
  call.attend.most_splits = kMostSplits;
  const auto heads = to_unsigned(call.attend.kv_heads() * call.attend.head_tiles());
  std::byte* scratch = context.scratch(SplitSizes(call.attend).bytes);
  attend_in_splits(context, call.attend, scratch, 2, [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(to_unsigned(tokens), heads, to_unsigned(lanes));
    with_mma_width(call.queries.width, [&]<int kWidth>() {
      launch(context, decode_kernel<kWidth>, {blocks, dim3(kThreads), Layout<kWidth>::kBytes}, call);
    });
  });
}

}  // namespace sluice::backend::cuda::attention
