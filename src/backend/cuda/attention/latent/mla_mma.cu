// Latent attention on tensor cores: BF16 queries and caches, rank 512 and 64 rotary channels.
//
// A block has 64 query rows (heads of one token, or of several if there are fewer heads) and iterates over
// the cache 64 rows at a time, while the next 64 are copied to the second buffer; a copied row serves as key
// and as value. There are eight warps: for scores, 2 x 4 parts of 32 queries and 16 rows; for sums, 2 x 4
// parts of 32 queries and 128 channels, with the probabilities passed through shared memory. Decode divides
// the cache into splits; prefill does not. Grid: token tiles, head tiles, lanes of splits. Bytes: a row once
// per block; operations: 2 (576 + 512) per query row and cache row. Scores are exact products with F32 sums;
// probabilities are rounded to BF16.
#include "backend/cuda/attention/latent/mla_mma.h"

#include "backend/cuda/attention/mma_tile.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::latent {

namespace {

constexpr int kRank = 512;
constexpr int kRope = 64;
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kQueries = 64;
constexpr int kRows = 64;  // rows of the cache per step
constexpr int kSplitRows = 256;
constexpr int kSplitTiles = kSplitRows / kRows;
constexpr int kColumns = kRank / 4;  // per warp
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

constexpr int kTileBytes = kRows * (kRank + kRope) * 2;  // also of queries
constexpr int kWeightAt = 3 * kTileBytes;
constexpr int kMaximaAt = kWeightAt + kQueries * kRows * 2;
constexpr int kBytes = kMaximaAt + 4 * kQueries * 4;
static_assert(kQueries == kRows && kRows == kRope);

// Latents and rotary channels of 64 rows in shared memory.
struct JoinedTile {
  TileRows<kRank> latent;
  TileRows<kRope> rope;

  __device__ explicit JoinedTile(char* data) : latent{data}, rope{data + kRows * kRank * 2} {}
};

struct Fetcher {
  FetchRows latents;
  FetchRows ropes;

  __device__ __forceinline__ void fetch(const JoinedTile& to, long long row, int page) const {
    const int thread = threadIdx.x;
    latents.fetch<kRank, kRows, kThreads>(to.latent, row, page, thread);
    ropes.fetch<kRope, kRows, kThreads>(to.rope, row, page, thread);
  }
};

// The 32 query rows of a warp; lane l has rows l/4 + 8i.
struct State {
  Sums sums[2][kColumns / 8];
  float maximum[4];
  float total[4];  // of the cache rows that the lane scores
  int last[4];     // last row of the cache that each query sees

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (auto& half : sums)
#pragma unroll
      for (Sums& one : half) one = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      maximum[i] = -INFINITY;
      total[i] = 0;
    }
  }
};

struct Place {
  int lane = to_int(threadIdx.x) % kWarp;
  int part = to_int(threadIdx.x) / kWarp % 4;        // of rows, of channels
  int first = to_int(threadIdx.x) / kWarp / 4 * 32;  // query row
  __device__ Place() {}
  __device__ int row(int i) const { return first + lane / 4 + 8 * i; }
};

template <int kWidth>
__device__ __forceinline__ void add_scores(Sums (&scores)[2][2], const TileRows<kWidth>& queries,
                                           const TileRows<kWidth>& keys, const Place& place) {
#pragma unroll 8
  for (int step = 0; step < kWidth / 16; ++step) {
    const Fragment right = keys.keys(place.part * 16, step);
#pragma unroll
    for (int m = 0; m < 2; ++m)
      multiply_add(scores[m][0], scores[m][1], queries.queries(place.first + 16 * m, step), right);
  }
}

// What the warps exchange in shared memory: a number per part and query, and the weights of a tile.
struct Exchange {
  float* maxima;  // and totals at the end
  TileRows<kRows> weights;
};

// The block's queries: `heads` heads from `first_head` on of some tokens.
struct BlockQueries {
  TokenTile tile;
  int first_head;
  int heads;
};

// Turns scores into weights in shared memory; rescales the previous sums.
__device__ __forceinline__ void weigh(State& state, Sums (&scores)[2][2], const Place& place, int row,
                                      float scale, const Exchange& exchange) {
  const auto& [maxima, weights] = exchange;
  const int column = place.part * 16 + place.lane % 4 * 2;
  // Query row i of the lane and column j of its four are element j%2 + 2(i%2) of scores[i/2][j/2].
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float& score = scores[i / 2][j / 2].at[i % 2 * 2 + j % 2];
      score = row + column + j / 2 * 8 + j % 2 <= state.last[i] ? score * scale : -INFINITY;
      largest = fmaxf(largest, score);
    }
    largest = quad_max(largest);
    if (place.lane % 4 == 0) maxima[place.part * kQueries + place.row(i)] = largest;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float larger = state.maximum[i];
#pragma unroll
    for (int p = 0; p < 4; ++p) larger = fmaxf(larger, maxima[p * kQueries + place.row(i)]);
    const float base = larger == -INFINITY ? 0.0f : larger;
    const float factor = exp2_approx(state.maximum[i] - base);
    state.maximum[i] = larger;
    state.total[i] *= factor;
    float weight[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      weight[j] = exp2_approx(scores[i / 2][j / 2].at[i % 2 * 2 + j % 2] - base);
      state.total[i] += weight[j];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<std::uint32_t*>(weights.at(place.row(i), place.part * 2 + half) +
                                        place.lane % 4 * 4) =
          pack_pair(weight[2 * half], weight[2 * half + 1]);
#pragma unroll
    for (Sums& one : state.sums[i / 2]) {
      one.at[i % 2 * 2] *= factor;
      one.at[i % 2 * 2 + 1] *= factor;
    }
  }
  __syncthreads();
}

__device__ __forceinline__ void add_values(State& state, const Place& place, const TileRows<kRows>& weights,
                                           const TileRows<kRank>& values) {
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    const Fragment left[2] = {weights.queries(place.first, k), weights.queries(place.first + 16, k)};
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step) {
      const Fragment right = values.values(k * 16, place.part * (kColumns / 16) + step);
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiply_add(state.sums[m][2 * step], state.sums[m][2 * step + 1], left[m], right);
    }
  }
}

// Writes the warp's queries: partial results of a split, or the output.
template <bool kSplit>
__device__ __forceinline__ void write(const State& state, const AttendCall& call, const BlockQueries& queries,
                                      const Place& place, int split, float* totals) {
  const auto& [tile, first_head, heads] = queries;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float total = quad_sum(state.total[i]);
    if (place.lane % 4 == 0) totals[place.part * kQueries + place.row(i)] = total;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = place.row(i);
    const int token = tile.begin + row / call.head_tile;
    const int head = row % call.head_tile;
    if (token >= tile.end || head >= heads) continue;
    const float total =
        (totals[row] + totals[kQueries + row]) + (totals[2 * kQueries + row] + totals[3 * kQueries + row]);
    const int column = place.part * kColumns + place.lane % 4 * 2;
    if constexpr (kSplit) {
      const long long to = call.partials.index(blockIdx.x, call.heads, first_head + head, split);
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
        *reinterpret_cast<float2*>(call.partials.sums + to * kRank + column + n * 8) =
            make_float2(state.sums[i / 2][n].at[i % 2 * 2], state.sums[i / 2][n].at[i % 2 * 2 + 1]);
      if (place.part == 0 && place.lane % 4 == 0)
        call.partials.scales[to] = make_float2(state.maximum[i] * kLn2, total);
    } else {
      auto* out = static_cast<Bf16*>(const_cast<void*>(call.out.data)) + token * call.out.token_stride +
                  (first_head + head) * call.out.head_stride + column;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n)
        *reinterpret_cast<std::uint32_t*>(out + n * 8) = pack_pair(
            state.sums[i / 2][n].at[i % 2 * 2] / total, state.sums[i / 2][n].at[i % 2 * 2 + 1] / total);
    }
  }
  __syncthreads();
}

template <int kWidth>
__device__ __forceinline__ void load_queries(const HeadRows& from, const AttendCall& call,
                                             const BlockQueries& queries, const TileRows<kWidth>& to) {
  const auto& [tile, first_head, heads] = queries;
  constexpr int kChunks = TileRows<kWidth>::kChunks;
  for (int i = threadIdx.x; i < kQueries * kChunks; i += kThreads) {
    const int token = tile.begin + i / kChunks / call.head_tile;
    const int head = i / kChunks % call.head_tile;
    const bool inside = token < tile.end && head < heads;
    const auto* row = static_cast<const Bf16*>(from.data);
    if (inside) row += token * from.token_stride + (first_head + head) * from.head_stride + i % kChunks * 8;
    copy_16(to.at(i / kChunks, i % kChunks), row, inside);
  }
}

template <bool kSplit>
__global__ void __launch_bounds__(kThreads, 1) mla_kernel(const __grid_constant__ MlaCall call) {
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const JoinedTile queries(shared);
  const Exchange exchange{reinterpret_cast<float*>(shared + kMaximaAt), {shared + kWeightAt}};
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile =
      kSplit ? tile_of_token(attend, attend.first_token + to_int(blockIdx.x))
             : tile_at(attend, kQueries / attend.head_tile, to_int(gridDim.x - 1 - blockIdx.x));
  if (tile.begin >= tile.end) return;
  const int first_head = to_int(blockIdx.y) * attend.head_tile;
  const BlockQueries own{tile, first_head, min(attend.head_tile, attend.heads - first_head)};
  const Fetcher cache{FetchRows(call.latents, tile, 0), FetchRows(call.ropes, tile, 0)};
  const int high = to_int(cache.latents.high);
  const int lanes = gridDim.z;
  const int first_split = kSplit ? to_int(blockIdx.z) : 0;
  const int splits = (high + kSplitRows - 1) / kSplitRows;
  const int units = !kSplit                ? (high + kRows - 1) / kRows
                    : first_split < splits ? (splits - first_split + lanes - 1) / lanes * kSplitTiles
                                           : 0;
  const auto split_of = [&](int unit) { return first_split + unit / kSplitTiles * lanes; };
  const auto row_of = [&](int unit) {
    return kSplit ? split_of(unit) * kSplitRows + unit % kSplitTiles * kRows : unit * kRows;
  };
  const auto buffer = [&](int unit) { return JoinedTile(shared + (1 + unit % 2) * kTileBytes); };
  if (units == 0) return;
  int entry = tile.pages.entry(min(row_of(0), high - 1));  // of the unit that is fetched next
  const auto fetch = [&](int unit) {
    if (unit < units && row_of(unit) < high) cache.fetch(buffer(unit), row_of(unit), tile.pages.page(entry));
    close_copies();
    if (unit + 1 < units && row_of(unit + 1) < high) entry = tile.pages.entry(row_of(unit + 1));
  };
  load_queries<kRank>(call.latent_queries, attend, own, queries.latent);
  load_queries<kRope>(call.rope_queries, attend, own, queries.rope);
  fetch(0);

  const Place place;
  State state;
  state.reset();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int token = tile.begin + place.row(i) / attend.head_tile;
    state.last[i] = to_int(tile.last(min(token, tile.end - 1)));
  }
  for (int unit = 0; unit < units; ++unit) {
    wait_for_copies<0>();
    __syncthreads();
    fetch(unit + 1);
    const int row = row_of(unit);
    if (row < high) {
      const JoinedTile keys = buffer(unit);
      Sums scores[2][2] = {};
      add_scores(scores, queries.latent, keys.latent, place);
      add_scores(scores, queries.rope, keys.rope, place);
      weigh(state, scores, place, row, attend.scale * kLog2E, exchange);
      add_values(state, place, exchange.weights, keys.latent);
    }
    if (kSplit ? unit % kSplitTiles == kSplitTiles - 1 : unit == units - 1) {
      __syncthreads();  // the totals reuse the memory of the maxima
      write<kSplit>(state, attend, own, place, kSplit ? split_of(unit) : 0, exchange.maxima);
      state.reset();
    }
  }
}

}  // namespace

bool mla_mma_supports(const Context& context, const MlaCall& call) {
  return call.latent_queries.width == kRank && call.rope_queries.width == kRope &&
         call.latent_queries.whole_chunks() && call.rope_queries.whole_chunks() &&
         call.latents.whole_chunks() && call.ropes.whole_chunks() && call.attend.out.whole_chunks() &&
         context.device().shared_bytes_per_block >= to_size(kBytes);
}

void attend_mla_mma(Context& context, const MlaCall& given) {
  MlaCall call = given;
  AttendCall& attend = call.attend;
  attend.head_tile = std::min(attend.heads, kQueries);
  attend.split_rows = kSplitRows;
  const auto heads = to_unsigned(attend.head_tiles());
  if (!context.decode_class(attend.sequences.tokens)) {
    const dim3 blocks(tiles(attend, kQueries / attend.head_tile), heads);
    launch(context, mla_kernel<false>, {blocks, dim3(kThreads), kBytes}, call);
    return;
  }
  std::byte* scratch = context.scratch(SplitSizes(attend).bytes);
  attend_in_splits(context, attend, scratch, 1, [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(to_unsigned(tokens), heads, to_unsigned(lanes));
    launch(context, mla_kernel<true>, {blocks, dim3(kThreads), kBytes}, call);
  });
}

}  // namespace sluice::backend::cuda::attention::latent
