// Decode attention from 4- and 8-bit TurboQuant caches on tensor cores: BF16 queries, widths 128, 256 and
// 512.
//
// A block has up to 16 query heads of one token and KV head and takes splits of the cache in turn. It rotates
// its queries once (unless they come rotated) to F16, scaled by a power of two a head. Each warp streams
// 16-row pieces of codes through its own ring in shared memory and turns bytes into F16 levels by a table,
// once for all heads. Cache rows, and then the coordinates of values, are the rows of the tensor cores'
// tiles, heads their columns: eight heads fill a tile. Norms never touch levels: a key's norm scales its
// score in F32; a value's norm joins the weight as 2^(score + log2 norm), whose running maximum keeps weights
// in F16's range. The warps of a block join their sums in a fixed tree at the end of a split, in the memory
// of the rings. Grid: tokens, KV heads x head tiles, lanes of splits. Bytes: codes and norms in sight once.
// Error about 3e-4 before the output's rounding.
#include "backend/cuda/attend_mma.cuh"
#include "backend/cuda/packed_pieces.cuh"

namespace sluice::backend::cuda {

namespace {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// Over the lanes of one head: those that differ in cache rows.
__device__ __forceinline__ float rows_max(float x) {
#pragma unroll
  for (int step = 4; step < kWarp; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
__device__ __forceinline__ float rows_sum(float x) {
#pragma unroll
  for (int step = 4; step < kWarp; step *= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// One warp's softmax: sums and totals in units of 2^maximum. Of heads 2(l%4) and the next of each tile.
template <int kSteps, int kTiles>
struct Stream {
  Sums sums[kTiles][kSteps];
  float maximum[kTiles][2];
  float total[kTiles][2];  // of the lane's own rows

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (Sums& one : sums[t]) one = {};
      maximum[t][0] = maximum[t][1] = -INFINITY;
      total[t][0] = total[t][1] = 0;
    }
  }

  // Scores of 16 rows by a tile of heads to weights (a right operand); rescales what was summed before.
  // `norms` are the piece's; rows [begin, end) of it are seen.
  __device__ __forceinline__ uint2 weigh(int t, const Sums& scores, const float (&scale)[2],
                                         const float* norms, float root, int begin, int end) {
    const int row = static_cast<int>(threadIdx.x) % kWarp / 4;
    float key[2];
    float value[2];
    float exponent[2];
    bool seen[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int at = row + 8 * r;
      seen[r] = at >= begin && at < end;
      key[r] = norms[at];
      value[r] = norms[kPiece + at] * root;
      exponent[r] = norm_exponent(value[r]);
    }
    float weights[2][2];  // row, head
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float larger = maximum[t][h];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        weights[r][h] = scores.at[2 * r + h] * (scale[h] * key[r]);
        if (seen[r]) larger = fmaxf(larger, weights[r][h] + exponent[r]);
      }
      larger = rows_max(larger);
      const float base = larger == -INFINITY ? 0.0f : larger;
      factor[h] = exp2_approx(maximum[t][h] - base);
      maximum[t][h] = larger;
      total[t][h] *= factor[h];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float score = weights[r][h] - base;
        if (seen[r]) total[t][h] += exp2_approx(score);
        weights[r][h] = seen[r] ? copysignf(exp2_approx(score + exponent[r]), value[r]) : 0.0f;
      }
    }
    if (__any_sync(0xffffffffu, factor[0] != 1.0f || factor[1] != 1.0f)) {
#pragma unroll
      for (Sums& one : sums[t]) {
        one.at[0] *= factor[0];
        one.at[1] *= factor[1];
        one.at[2] *= factor[0];
        one.at[3] *= factor[1];
      }
    }
    return {transpose_matrix(half_pair(weights[0][0], weights[0][1])),
            transpose_matrix(half_pair(weights[1][0], weights[1][1]))};
  }
};

// The lower (or upper) codes of every byte of two rows, side by side.
__device__ __forceinline__ std::uint32_t lower_nibbles(std::uint32_t first, std::uint32_t second) {
  return (first & 0x0f0f0f0fu) | (second << 4 & 0xf0f0f0f0u);
}
__device__ __forceinline__ std::uint32_t upper_nibbles(std::uint32_t first, std::uint32_t second) {
  return (first >> 4 & 0x0f0f0f0fu) | (second & 0xf0f0f0f0u);
}

// scores = the 16 keys of a slot times the queries.
template <class Shared, int kBits, int kTiles>
__device__ __forceinline__ void score_keys(Sums (&scores)[kTiles], const char* own, const char* slot,
                                           const uint2* queries) {
  using Key = typename Shared::Key;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::uint32_t words[2][Key::kKeyWords];
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int j = 0; j < Key::kKeyChunks; ++j)
      *reinterpret_cast<uint4*>(words[h] + 4 * j) =
          *reinterpret_cast<const uint4*>(slot + ((h * Key::kKeyChunks + j) * kWarp + lane) * 16);
#pragma unroll
  for (int step = 0; step < Shared::kSteps; ++step) {
    const uint2 upper = key_operand<kBits>(own, words[0], step);
    const uint2 lower = key_operand<kBits>(own, words[1], step);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const uint2 q = queries[(t * Shared::kSteps + step) * kWarp + lane];
      multiply_add_f16(scores[t], {upper.x, lower.x, upper.y, lower.y}, q.x, q.y);
    }
  }
}

// sums += the 16 values of a slot, transposed, times the weights.
template <class Shared, int kBits, int kTiles>
__device__ __forceinline__ void add_values(Sums (&sums)[kTiles][Shared::kSteps],
                                           const uint2 (&weights)[kTiles], const char* own,
                                           const char* slot) {
  using Value = typename Shared::Value;
  using Chunk = std::conditional_t<Value::kValueChunk == 16, uint4, uint2>;
  constexpr int kChunkWords = Value::kValueChunk / 4;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto multiply = [&](int step, const uint4& left) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) multiply_add_f16(sums[t][step], left, weights[t].x, weights[t].y);
  };
#pragma unroll
  for (int chunk = 0; chunk < Value::kValueChunks; ++chunk) {
    union {
      Chunk all;
      std::uint32_t words[kChunkWords];
    } rows[4];
#pragma unroll
    for (int r = 0; r < 4; ++r)
      rows[r].all = reinterpret_cast<const Chunk*>(
          slot + Shared::kValueAt)[(r * Value::kValueChunks + chunk) * kWarp + lane];
#pragma unroll
    for (int w = 0; w < kChunkWords; ++w) {
      const int word = chunk * kChunkWords + w;
      const std::uint32_t a = rows[0].words[w];
      const std::uint32_t b = rows[1].words[w];
      const std::uint32_t c = rows[2].words[w];
      const std::uint32_t d = rows[3].words[w];
      if constexpr (kBits == 4) {
        // A byte of two rows' codes finds both levels at once.
        const std::uint32_t even[2] = {lower_nibbles(a, b), lower_nibbles(c, d)};
        const std::uint32_t odd[2] = {upper_nibbles(a, b), upper_nibbles(c, d)};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          multiply(word * 4 + i, {look_up(own, even[0], i), look_up(own, odd[0], i), look_up(own, even[1], i),
                                  look_up(own, odd[1], i)});
      } else {
#pragma unroll
        for (int i = 0; i < 4; i += 2)
          multiply(word * 2 + i / 2, {lower_halves(look_up(own, a, i), look_up(own, b, i)),
                                      lower_halves(look_up(own, a, i + 1), look_up(own, b, i + 1)),
                                      lower_halves(look_up(own, c, i), look_up(own, d, i)),
                                      lower_halves(look_up(own, c, i + 1), look_up(own, d, i + 1))});
      }
    }
  }
}

// Joins the warps' results of one split and writes them. The rings are idle.
template <class Shared, int kTiles, int kWidth>
__device__ __forceinline__ void join(Stream<Shared::kSteps, kTiles>& stream, char* shared,
                                     const AttendCall& call, int split, int first_head, int heads) {
  constexpr int kWarps = Shared::kWarps;
  constexpr int kHeads = Shared::kHeads;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  auto* maxima = reinterpret_cast<float*>(shared + Shared::kScaleAt);
  float* totals = maxima + kWarps * kHeads;
  const auto place = [&](int buffer, int i) {
    return reinterpret_cast<float4*>(shared) + (buffer * kTiles * Shared::kSteps + i) * kWarp + lane;
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
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int head = t * kTileHeads + lane % 4 * 2 + h;
      float largest = -INFINITY;
      for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, maxima[w * kHeads + head]);
      factor[h] = exp2_approx(stream.maximum[t][h] - (largest == -INFINITY ? 0.0f : largest));
    }
#pragma unroll
    for (Sums& one : stream.sums[t]) {
      one.at[0] *= factor[0];
      one.at[1] *= factor[1];
      one.at[2] *= factor[0];
      one.at[3] *= factor[1];
    }
  }
#pragma unroll 1
  for (int step = kWarps / 2; step >= 1; step /= 2) {
    if (warp >= step && warp < 2 * step) {
#pragma unroll
      for (int i = 0; i < kTiles * Shared::kSteps; ++i)
        *place(warp - step, i) =
            *reinterpret_cast<const float4*>(&stream.sums[i / Shared::kSteps][i % Shared::kSteps]);
    }
    __syncthreads();
    if (warp < step) {
#pragma unroll
      for (int i = 0; i < kTiles * Shared::kSteps; ++i) {
        const float4 other = *place(warp, i);
        Sums& one = stream.sums[i / Shared::kSteps][i % Shared::kSteps];
        one.at[0] += other.x;
        one.at[1] += other.y;
        one.at[2] += other.z;
        one.at[3] += other.w;
      }
    }
    __syncthreads();
  }
  constexpr int kStride = kWidth + 4;
  auto* joined = reinterpret_cast<float*>(shared);
  if (warp == 0) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < Shared::kSteps; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          joined[(t * kTileHeads + lane % 4 * 2 + j % 2) * kStride +
                 Shared::Value::value_coordinate(lane / 4, 2 * i + j / 2)] = stream.sums[t][i].at[j];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < heads * (kWidth / 4); i += Shared::kThreads) {
    const int head = i / (kWidth / 4);
    const long long to = call.partials.index(blockIdx.x, call.heads, first_head + head, split);
    reinterpret_cast<float4*>(call.partials.sums + to * kWidth)[i % (kWidth / 4)] =
        *reinterpret_cast<const float4*>(joined + head * kStride + i % (kWidth / 4) * 4);
  }
  if (static_cast<int>(threadIdx.x) < heads) {
    const auto head = static_cast<int>(threadIdx.x);
    float largest = -INFINITY;
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, maxima[w * kHeads + head]);
    float total = 0;
    for (int w = 0; w < kWarps; ++w)
      total += totals[w * kHeads + head] * exp2_approx(maxima[w * kHeads + head] - largest);
    call.partials.scales[call.partials.index(blockIdx.x, call.heads, first_head + head, split)] =
        make_float2(largest * kLn2, total);
  }
  __syncthreads();
}

template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
__global__ void __launch_bounds__((PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>::kThreads), 1)
    packed_kernel(const __grid_constant__ PackedCall call) {
  using Shared = PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>;
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  char* ring = shared + warp * Shared::kSlots * Shared::kSlotBytes;
  char* key_table = shared + Shared::kTableAt;
  char* value_table = key_table + (Shared::kTables - 1) * kLevelTableBytes;
  auto* queries = reinterpret_cast<uint2*>(shared + Shared::kQueryAt);
  float* factors = reinterpret_cast<float*>(shared + Shared::kScaleAt) + 2 * Shared::kWarps * Shared::kHeads;
  fill_level_table<kKeyBits>(call.keys.levels, key_table);
  if (Shared::kTables == 2) fill_level_table<kValueBits>(call.values.levels, value_table);
  wait_for_inputs();
  allow_successor();
  const AttendCall& attend = call.attend;
  const TokenTile tile = tile_of_token(attend, attend.first_token + static_cast<int>(blockIdx.x));
  if (tile.begin == tile.end) return;
  const int kv_head = static_cast<int>(blockIdx.y) / attend.head_tiles();
  const int head_in_group = static_cast<int>(blockIdx.y) % attend.head_tiles() * attend.head_tile;
  const int heads = min(attend.head_tile, attend.group - head_in_group);
  const int first_head = kv_head * attend.group + head_in_group;
  const PackedRows keys = call.keys.of(tile.slot, kv_head, tile.ring_start);
  const PackedRows values = call.values.of(tile.slot, kv_head, tile.ring_start);
  const PieceSource source(keys, values, tile.first(tile.begin), tile.last(tile.begin));
  const int doublings = attend.doublings(tile.last(tile.begin));
  const int pieces = Shared::kPieces << doublings;
  const int split_rows = kPackedSplitRows << doublings;
  int split = source.low / split_rows + static_cast<int>(blockIdx.z);
  if (split * split_rows >= source.high) return;
  load_queries<Shared, kWidth>(call, tile.begin, first_head, heads,
                               reinterpret_cast<__half*>(shared + Shared::kStagedAt), queries, factors);
  const float unit_scale = attend.scale * keys.root * kLog2E;
  float scale[kTiles][2];
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i)
    scale[i / 2][i % 2] = unit_scale * factors[i / 2 * kTileHeads + lane % 4 * 2 + i % 2];

  for (; split * split_rows < source.high; split += static_cast<int>(gridDim.z)) {
    const auto row_of = [&](int piece) {
      return split * split_rows + (piece * Shared::kWarps + warp) * kPiece;
    };
    const auto fetch = [&](int piece, int slot) {
      const int row = row_of(piece);
      if (piece < pieces && source.in_sight(row))
        source.template fetch<Shared>(row, ring + slot * Shared::kSlotBytes);
      close_copies();
    };
#pragma unroll
    for (int piece = 0; piece + 1 < Shared::kSlots; ++piece) fetch(piece, piece);
    Stream<Shared::kSteps, kTiles> stream;
    stream.reset();
    int slot = 0;
    int free_slot = Shared::kSlots - 1;
#pragma unroll 1
    for (int piece = 0; piece < pieces; ++piece) {
      const int row = row_of(piece);
      fetch(piece + Shared::kSlots - 1, free_slot);
      wait_for_copies<Shared::kSlots - 1>();
      __syncwarp();
      if (source.in_sight(row)) {
        const char* from = ring + slot * Shared::kSlotBytes;
        Sums scores[kTiles] = {};
        score_keys<Shared, kKeyBits>(scores, key_table + lane * 4, from, queries);
        const int begin = max(source.low - row, 0);
        const int end = min(source.high - row, kPiece);
        uint2 weights[kTiles];
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          weights[t] =
              stream.weigh(t, scores[t], scale[t], reinterpret_cast<const float*>(from + Shared::kNormAt),
                           values.root, begin, end);
        add_values<Shared, kValueBits>(stream.sums, weights, value_table + lane * 4, from);
      }
      __syncwarp();
      free_slot = slot;
      slot = slot + 1 == Shared::kSlots ? 0 : slot + 1;
    }
    wait_for_copies<0>();
    __syncthreads();
    join<Shared, kTiles, kWidth>(stream, shared, attend, split, first_head, heads);
  }
}

template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
void launch_splits(Context& context, const PackedCall& call, const dim3& blocks) {
  using Shared = PackedLayout<kKeyBits, kValueBits, kWidth, kTiles>;
  launch(context, packed_kernel<kKeyBits, kValueBits, kWidth, kTiles>,
         {blocks, dim3(Shared::kThreads), Shared::kBytes}, call);
}

// Tiles of heads that leave a warp the registers for its sums.
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
  const auto heads = static_cast<unsigned>(attend.kv_heads() * attend.head_tiles());
  attend_in_splits(context, attend, scratch, 1, [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(static_cast<unsigned>(tokens), heads, static_cast<unsigned>(lanes));
    if (call.queries.width == 512) return launch_splits<4, 4, 512, 1>(context, call, blocks);
    with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
      if (tiles == 2) return launch_splits<kKeyBits, kValueBits, kWidth, 2>(context, call, blocks);
      launch_splits<kKeyBits, kValueBits, kWidth, 1>(context, call, blocks);
    });
  });
}

}  // namespace sluice::backend::cuda
