// Decode attention from 4- and 8-bit TurboQuant caches on tensor cores: BF16 queries, widths 128, 256 and
// 512.
//
// A block computes up to 16 query heads of one token and KV head and loops over splits of the cache. It
// rotates its queries once (unless they are already rotated) to F16, scaled by a power of two per head. Codes
// are streamed through a ring buffer in shared memory per warp and converted to F16 levels by a table, once
// for all heads: a byte permute makes the address, a load from shared memory gives the levels. Two warps
// share 32 rows: each scores half of the rows, passes its weights to the other, and sums half of the
// coordinates of all rows, which halves the accumulators' registers. Cache rows, and then the coordinates of
// values, are the rows of the tensor cores' tiles, and heads are their columns: eight heads fill a tile.
// Levels are not multiplied by norms: a key's norm scales its score in F32, a value's norm its weight; the
// running maximum of score + log2 norm keeps weights in F16's range. At the end of a split the warps' sums
// are combined in a fixed order, in the memory of the ring buffers. Grid: tokens, KV heads x head tiles,
// lanes of splits. Bytes: visible codes and norms once. The error is about 3e-4 before the output is rounded.
#include "backend/cuda/attention/packed/packed_pieces.cuh"
#include "backend/cuda/attention/packed/packed_softmax.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

namespace {

constexpr float kLog2E = 1.4426950408889634f;

// The lower (or upper) codes of every byte of two rows, interleaved.
__device__ __forceinline__ std::uint32_t lower_nibbles(std::uint32_t first, std::uint32_t second) {
  return (first & 0x0f0f0f0fu) | (second << 4 & 0xf0f0f0f0u);
}
__device__ __forceinline__ std::uint32_t upper_nibbles(std::uint32_t first, std::uint32_t second) {
  return (first >> 4 & 0x0f0f0f0fu) | (second & 0xf0f0f0f0u);
}

// Four values of step `step` from a lane's words of a key.
template <int kBits, int kWords>
__device__ __forceinline__ uint2 key_levels(std::uint32_t own, const std::uint32_t (&words)[kWords],
                                            int step) {
  if constexpr (kBits == 4) {
    const std::uint32_t word = words[step / 2];
    return {find_levels(own, word, step % 2 * 2), find_levels(own, word, step % 2 * 2 + 1)};
  } else {
    const std::uint32_t word = words[step];
    return {lower_halves(find_levels(own, word, 0), find_levels(own, word, 1)),
            lower_halves(find_levels(own, word, 2), find_levels(own, word, 3))};
  }
}

// scores = the 16 keys of a slot times the queries. Two sums per tile halve the chain of dependent products.
template <class Shared, int kBits, int kTiles>
__device__ __forceinline__ void score_keys(Sums (&scores)[kTiles], std::uint32_t own, const char* slot,
                                           const uint4* queries) {
  using Key = typename Shared::Key;
  using Tile = CodeTile<Key::kRowBytes>;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int first = Tile::place(lane / 4 * Tile::kChunks + lane % 4);
  std::uint32_t words[2][Key::kKeyWords];
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int j = 0; j < Key::kKeyChunks; ++j)
      *reinterpret_cast<uint4*>(words[h] + 4 * j) =
          *reinterpret_cast<const uint4*>(slot + Tile::behind(first, 8 * h * Tile::kChunks + 4 * j));
  Sums odd[kTiles] = {};
#pragma unroll
  for (int pair = 0; pair < Shared::kSteps / 2; ++pair) {
    const uint2 upper[2] = {key_levels<kBits>(own, words[0], 2 * pair),
                            key_levels<kBits>(own, words[0], 2 * pair + 1)};
    const uint2 lower[2] = {key_levels<kBits>(own, words[1], 2 * pair),
                            key_levels<kBits>(own, words[1], 2 * pair + 1)};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const uint4 q = queries[(t * (Shared::kSteps / 2) + pair) * kWarp + lane];
      multiply_add_f16(scores[t], {upper[0].x, lower[0].x, upper[0].y, lower[0].y}, q.x, q.y);
      multiply_add_f16(odd[t], {upper[1].x, lower[1].x, upper[1].y, lower[1].y}, q.z, q.w);
    }
  }
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[t].at[i] += odd[t].at[i];
}

// sums += 16 values of a slot, transposed, times the weights; `first` is the row of the first value.
template <class Shared, int kBits, int kTiles>
__device__ __forceinline__ void add_values(Sums (&sums)[kTiles][Shared::kHalfSteps],
                                           const uint2 (&weights)[kTiles], std::uint32_t own,
                                           const char* slot, int first) {
  using Value = typename Shared::Value;
  constexpr int kChunk = Value::kValueChunk;
  using Chunk = std::conditional_t<kChunk == 16, uint4, std::conditional_t<kChunk == 8, uint2, unsigned>>;
  using Tile = CodeTile<Value::kRowBytes>;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int byte = lane / 4 * kChunk;
  const int first_place = Tile::place(lane % 4 * 2 * Tile::kChunks + byte / 16) + byte % 16;
  std::uint32_t rows[4][Value::kValueWords];
#pragma unroll
  for (int r = 0; r < 4; ++r)
#pragma unroll
    for (int j = 0; j < Value::kValueChunks; ++j)
      *reinterpret_cast<Chunk*>(rows[r] + j * (kChunk / 4)) = *reinterpret_cast<const Chunk*>(
          slot + Shared::kValueAt +
          Tile::behind(first_place, (first + r % 2 + r / 2 * 8) * Tile::kChunks + j * 8 * kChunk / 16));
  const auto multiply = [&](int step, const uint4& left) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) multiply_add_f16(sums[t][step], left, weights[t].x, weights[t].y);
  };
#pragma unroll
  for (int word = 0; word < Value::kValueWords; ++word) {
    const std::uint32_t a = rows[0][word];
    const std::uint32_t b = rows[1][word];
    const std::uint32_t c = rows[2][word];
    const std::uint32_t d = rows[3][word];
    if constexpr (kBits == 4) {
      // One look-up of a byte with two rows' codes gives both levels.
      const std::uint32_t even[2] = {lower_nibbles(a, b), lower_nibbles(c, d)};
      const std::uint32_t odd[2] = {upper_nibbles(a, b), upper_nibbles(c, d)};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        multiply(word * 4 + i, {find_levels(own, even[0], i), find_levels(own, odd[0], i),
                                find_levels(own, even[1], i), find_levels(own, odd[1], i)});
    } else {
#pragma unroll
      for (int i = 0; i < 4; i += 2)
        multiply(word * 2 + i / 2, {lower_halves(find_levels(own, a, i), find_levels(own, b, i)),
                                    lower_halves(find_levels(own, a, i + 1), find_levels(own, b, i + 1)),
                                    lower_halves(find_levels(own, c, i), find_levels(own, d, i)),
                                    lower_halves(find_levels(own, c, i + 1), find_levels(own, d, i + 1))});
    }
  }
}

// Where a warp stores the sums of `head` and coordinates d and d + 1 of its half, without bank conflicts.
template <int kHalf>
__device__ __forceinline__ int sum_place(int head, int d) {
  return head * kHalf + d / 32 * 32 + ((d % 32 / 2) ^ (d / 32 % 4 + head / 2 % 4 * 4)) * 2;
}

// Combines the warps' results of one split and writes them. The ring buffers are idle.
template <class Shared, int kTiles, int kWidth>
__device__ __forceinline__ void join(Stream<Shared::kHalfSteps, kTiles, Shared::kWarps>& stream, char* shared,
                                     const AttendCall& call, int split, int first_head, int heads) {
  constexpr int kWarps = Shared::kWarps;
  constexpr int kHeads = Shared::kHeads;
  constexpr int kHalf = kWidth / 2;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  float* maxima = reinterpret_cast<float*>(shared) + kHeads;
  float* totals = maxima + kWarps * kHeads;
  const auto largest = [&](int head) {
    float result = kLowest;
#pragma unroll
    for (int w = 0; w < kWarps; w += 2) result = fmaxf(result, maxima[w * kHeads + head]);
    return result;
  };
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float total = rows_sum(stream.total[t][h]);
      const int head = t * kTileHeads + lane % 4 * 2 + h;
      if (lane < 4) {
        maxima[warp * kHeads + head] = stream.maximum[t][h];
        totals[warp * kHeads + head] = total;
      }
    }
  __syncthreads();
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const int head = lane % 4 * 2;
    stream.scale_sums(t, {exp2_approx(stream.maximum[t][0] - largest(t * kTileHeads + head)),
                          exp2_approx(stream.maximum[t][1] - largest(t * kTileHeads + head + 1))});
    auto* buffer = reinterpret_cast<float*>(Shared::ring(shared, warp));
    if (t > 0) __syncthreads();
#pragma unroll
    for (int i = 0; i < Shared::kHalfSteps; ++i) {
      const int d = Shared::Value::value_coordinate(lane / 4, 2 * i);
      const Sums& one = stream.sums[t][i];
      *reinterpret_cast<float2*>(buffer + sum_place<kHalf>(head, d)) = make_float2(one.at[0], one.at[2]);
      *reinterpret_cast<float2*>(buffer + sum_place<kHalf>(head + 1, d)) = make_float2(one.at[1], one.at[3]);
    }
    __syncthreads();
    const int tile_heads = min(heads - t * kTileHeads, kTileHeads);
    for (int i = threadIdx.x; i < tile_heads * kHalf; i += Shared::kThreads) {
      const int d = i % kHalf * 2;
      const int place = sum_place<kHalf>(i / kHalf, d % kHalf);
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (int w = 0; w < kWarps; w += 2) {
        const float2 part = *reinterpret_cast<const float2*>(Shared::ring(shared, w + d / kHalf) + place * 4);
        sum.x += part.x;
        sum.y += part.y;
      }
      const long long to =
          call.partials.index(blockIdx.x, call.heads, first_head + t * kTileHeads + i / kHalf, split);
      *reinterpret_cast<float2*>(call.partials.sums + to * kWidth + d) = sum;
    }
  }
  if (to_int(threadIdx.x) < heads) {
    const int head = threadIdx.x;
    const float maximum = largest(head);
    float total = 0;
    for (int w = 0; w < kWarps; ++w)
      total += totals[w * kHeads + head] * exp2_approx(maxima[w * kHeads + head] - maximum);
    call.partials.scales[call.partials.index(blockIdx.x, call.heads, first_head + head, split)] =
        make_float2(maximum, total);
  }
  __syncthreads();
}

template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
__global__ void __launch_bounds__((PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>::kThreads), 1)
    packed_kernel(const __grid_constant__ PackedCall call) {
  using Shared = PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>;
  constexpr int kStride = Shared::kWarps * kPiece;  // rows between the pieces of a pair of warps
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  char* key_entries = Shared::table(shared);
  char* value_entries = key_entries + (kKeyBits == kValueBits ? 0 : 128);
  fill_level_table<kKeyBits, kPairEntryBytes>(call.keys.levels, key_entries);
  if (kKeyBits != kValueBits)
    fill_level_table<kValueBits, kPairEntryBytes>(call.values.levels, value_entries);
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile = tile_of_token(attend, attend.first_token + to_int(blockIdx.x));
  if (tile.begin == tile.end) return;
  const auto [kv_head, first_head, heads] = block_heads(attend);
  const PackedRows keys = call.keys.of(tile, kv_head);
  const PackedRows values = call.values.of(tile, kv_head);
  const PieceSource source(keys, values, tile.first(tile.begin), tile.last(tile.begin));
  const int split_rows = kPackedSplitRows << attend.doublings(tile.last(tile.begin));
  int split = source.low / split_rows + to_int(blockIdx.z);
  if (split * split_rows >= source.high) return;

  char* ring = Shared::ring(shared, warp);
  int row;
  int end;
  int entry = 0;  // of the rows that are fetched next
  const auto fetch = [&](int from, int slot) {
    if (from < end) source.template fetch<Shared>(from, entry, warp % 2, ring + slot * Shared::kSlotBytes);
    close_copies();
    if (from + kStride < end) entry = source.entry_of(from + kStride);
  };
  // Starts with the pair's first visible pieces of the split.
  const auto begin_split = [&] {
    row = split * split_rows + warp / 2 * 2 * kPiece;
    end = min((split + 1) * split_rows, source.high);
    if (row + 2 * kPiece <= source.low) row += ((source.low - row - 2 * kPiece) / kStride + 1) * kStride;
    if (row < end) entry = source.entry_of(row);
#pragma unroll
    for (int slot = 0; slot + 1 < Shared::kSlots; ++slot) fetch(row + slot * kStride, slot);
  };
  // Before the codes, because the loads that are issued first complete first.
  QueryHeads<Shared, kWidth> block_heads(call.queries, tile.begin, first_head, heads);
  begin_split();
  auto* queries = reinterpret_cast<uint4*>(Shared::behind(shared) + Shared::kQueryAt);
  auto* factors = reinterpret_cast<float*>(shared);
  const Pair pair{reinterpret_cast<uint2*>(Shared::behind(shared) + Shared::kWeightAt),
                  reinterpret_cast<float2*>(factors + (2 * Shared::kWarps + 1) * Shared::kHeads), warp,
                  1 + warp / 2};
  block_heads.store(call, reinterpret_cast<__half*>(pair.weights), queries, factors);
  const std::uint32_t own_keys = own_levels(key_entries);
  const std::uint32_t own_values = own_levels(value_entries);
  const float unit_scale = attend.scale * keys.root * kLog2E;
  float scale[kTiles][2];
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i)
    scale[i / 2][i % 2] = unit_scale * factors[i / 2 * kTileHeads + lane % 4 * 2 + i % 2];

  while (true) {
    Stream<Shared::kHalfSteps, kTiles, Shared::kWarps> stream;
    stream.reset();
    int slot = 0;
    int free_slot = Shared::kSlots - 1;
    int turn = 0;
#pragma unroll 1
    for (; row < end; row += kStride, turn ^= 1) {
      fetch(row + (Shared::kSlots - 1) * kStride, free_slot);
      wait_for_copies<Shared::kSlots - 1>();
      __syncwarp();
      const char* from = ring + slot * Shared::kSlotBytes;
      Sums scores[kTiles] = {};
      score_keys<Shared, kKeyBits>(scores, own_keys, from, queries);
      const auto* norms = reinterpret_cast<const float*>(from + Shared::kNormAt);
      RowPair rows;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at = lane / 4 + 8 * r;
        const int own_row = row + warp % 2 * kPiece + at;
        rows.seen[r] = own_row >= source.low && own_row < source.high;
        rows.key[r] = norms[at];
        rows.value[r] = norms[kPiece + at] * values.root;
        rows.exponent[r] = norm_exponent(rows.value[r]);
      }
      uint2 weights[2][kTiles];
      stream.weigh(scores, scale, rows, pair, turn, weights);
#pragma unroll
      for (int s = 0; s < 2; ++s)
        add_values<Shared, kValueBits>(stream.sums, weights[s], own_values, from, s * kPiece);
      __syncwarp();
      free_slot = slot;
      slot = slot + 1 == Shared::kSlots ? 0 : slot + 1;
    }
    wait_for_copies<0>();
    __syncthreads();
    join<Shared, kTiles, kWidth>(stream, shared, attend, split, first_head, heads);
    split += to_int(gridDim.z);
    if (split * split_rows >= source.high) return;
    begin_split();
  }
}

template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
void launch_splits(Context& context, const PackedCall& call, const dim3& blocks) {
  using Shared = PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>;
  launch(context, packed_kernel<kKeyBits, kValueBits, kWidth, kTiles>,
         {blocks, dim3(Shared::kThreads), Shared::kBytes}, call);
}

// Tiles of heads that leave a warp enough registers for its accumulators.
int head_tiles(const PackedCall& call) {
  return call.attend.group > kTileHeads && call.queries.width <= 256 ? 2 : 1;
}

}  // namespace

void attend_packed_mma(Context& context, const PackedCall& given, std::byte* scratch) {
  PackedCall call = given;
  AttendCall& attend = call.attend;
  const int tiles = head_tiles(call);
  attend.head_tile = std::min(attend.group, tiles * kTileHeads);
  attend.split_rows = kPackedSplitRows;
  attend.most_splits = kPackedMostSplits;
  const auto heads = to_unsigned(attend.kv_heads() * attend.head_tiles());
  const auto launch_part = [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(to_unsigned(tokens), heads, to_unsigned(lanes));
    if (call.queries.width == 512) return launch_splits<4, 4, 512, 1>(context, call, blocks);
    with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
      if (tiles == 2) return launch_splits<kKeyBits, kValueBits, kWidth, 2>(context, call, blocks);
      launch_splits<kKeyBits, kValueBits, kWidth, 1>(context, call, blocks);
    });
  };
  attend_in_splits(context, attend, scratch, 1, launch_part, [&](const AttendCall& part, int tokens) {
    merge_rotated(context, {part, call.signs, call.rotated}, tokens);
  });
}

}  // namespace sluice::backend::cuda::attention::packed
