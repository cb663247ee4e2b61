// Decode attention from 4- and 8-bit TurboQuant caches on tensor cores: BF16 queries, widths 128 and 256.
//
// A block has up to 16 query heads of one token and KV head and takes splits of kSplitRows logical rows in
// turn. It rotates its queries once (unless they come rotated) to F16, scaled by a power of two a head. Each
// warp streams 16-row pieces of codes through its own ring in shared memory and turns bytes into F16 levels
// by a table, once for all heads. Norms never touch levels: a key's norm scales its score in F32; a value's
// norm joins the weight as 2^(score + log2 norm), whose running maximum keeps weights in F16's range.
// The warps of a block join their sums in a fixed tree at the end of a split.
// Grid: tokens, KV heads x head tiles, lanes of splits. Bytes: codes and norms in sight once. Error about
// 3e-4 before the output's rounding.
#include "backend/cuda/attend_mma.cuh"
#include "backend/cuda/attend_packed.h"
#include "backend/cuda/packed_format.cuh"

namespace sluice::backend::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kHeads = 16;
constexpr int kSplitRows = kPackedSplitRows;
constexpr int kPiece = 16;
constexpr int kPieces = kSplitRows / kPiece / kWarps;  // of a warp in a split
constexpr int kHalf = 8;                               // query heads joined at a time
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

template <int kKeyBits, int kValueBits, int kWidth>
struct Layout {
  using Key = PackedFormat<kKeyBits, kWidth>;
  using Value = PackedFormat<kValueBits, kWidth>;
  static constexpr int kSlots = kKeyBits == 4 && kValueBits == 4 ? 3 : 2;
  static constexpr int kValueAt = kPiece * Key::kRowBytes;
  static constexpr int kNormAt = kValueAt + kPiece * Value::kRowBytes;
  static constexpr int kSlotBytes = kNormAt + 2 * kPiece * 4;
  static constexpr int kTables = kKeyBits == kValueBits ? 1 : 2;
  static constexpr int kJoinStride = kWidth + 8;  // floats
  static constexpr int kTableAt = kWarps * kSlots * kSlotBytes;
  static constexpr int kQueryAt = kTableAt + kTables * kLevelTableBytes;
  static constexpr int kJoinAt = kQueryAt + kWidth / 16 * kWarp * 16;
  static constexpr int kScaleAt = kJoinAt + kWarps / 2 * kHalf * kJoinStride * 4;
  static constexpr int kBytes = kScaleAt + (2 * kWarps + 1) * kHeads * 4;
};

// The block's query heads, rotated and scaled by a power of two each, as left operands in lane order.
template <int kBits, int kWidth>
__device__ __forceinline__ void load_queries(const PackedCall& call, int token, int first_head, int heads,
                                             __half* staged, uint4* queries, float* factors) {
  constexpr int kCount = kWidth / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int head = threadIdx.x / kWarp; head < kHeads; head += kWarps) {
    float q[kCount];
#pragma unroll
    for (int r = 0; r < kCount; ++r)
      q[r] = head < heads ? call.queries.at(token, first_head + head, lane + r * kWarp) : 0.0f;
    const float factor = rotate_query(q, call.signs, call.rotated);
#pragma unroll
    for (int r = 0; r < kCount; ++r) staged[head * kWidth + lane + r * kWarp] = __float2half(q[r]);
    if (lane == 0) factors[head] = factor;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kWidth / 16 * kWarp; i += kThreads) {
    const int l = i % kWarp;
    const auto pair = [&](int head, int part) {
      const int d = PackedFormat<kBits, kWidth>::key_coordinate(l % 4, i / kWarp * 4 + part * 2);
      return *reinterpret_cast<const std::uint32_t*>(staged + head * kWidth + d);
    };
    queries[i] = {pair(l / 4, 0), pair(l / 4 + 8, 0), pair(l / 4, 1), pair(l / 4 + 8, 1)};
  }
  __syncthreads();
}

// One warp's fetches: lane l has rows l/4 and l/4 + 8 of the keys, and rows 2(l%4), the next, and both + 8 of
// the values.
template <class Shared>
__device__ __forceinline__ void fetch_piece(const PackedRows& keys, const PackedRows& values, long long row,
                                            long long low, long long high, char* slot) {
  using Key = typename Shared::Key;
  using Value = typename Shared::Value;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto seen = [&](long long at) { return at >= low && at < high; };
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long at = row + lane / 4 + h * 8;
    if (!seen(at)) continue;
    const unsigned char* from = keys.codes + keys.slot_of(at) * keys.stride + lane % 4 * 16;
#pragma unroll
    for (int j = 0; j < Key::kKeyChunks; ++j)
      copy_16(slot + ((h * Key::kKeyChunks + j) * kWarp + lane) * 16, from + j * 64, true);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const long long at = row + lane % 4 * 2 + r % 2 + r / 2 * 8;
    if (!seen(at)) continue;
    const unsigned char* from =
        values.codes + values.slot_of(at) * values.stride + lane / 4 * Value::kValueChunk;
    char* to = slot + Shared::kValueAt;
#pragma unroll
    for (int j = 0; j < Value::kValueChunks; ++j)
      copy_chunk<Value::kValueChunk>(to + ((r * Value::kValueChunks + j) * kWarp + lane) * Value::kValueChunk,
                                     from + j * 8 * Value::kValueChunk);
  }
  const long long at = row + lane % kPiece;
  const float* norms = lane < kPiece ? keys.norms : values.norms;
  if (seen(at)) copy_4(slot + Shared::kNormAt + lane * 4, norms + keys.slot_of(at));
}

// One warp's softmax: sums and totals in units of 2^maximum.
template <int kWidth>
struct Stream {
  Sums sums[kWidth / 8];
  float maximum[2];
  float total[2];  // of the lane's own rows

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (Sums& one : sums) one = {};
    maximum[0] = maximum[1] = -INFINITY;
    total[0] = total[1] = 0;
  }

  // Scores of 16 rows to weights (a left operand); rescales what was summed before. `norms` are the piece's.
  __device__ __forceinline__ uint4 weigh(const Sums (&scores)[2], const float (&scale)[2], const float* norms,
                                         float root, int begin, int end) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    float key[4];
    float value[4];
    float exponent[4];
    bool seen[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = lane % 4 * 2 + i % 2 + i / 2 * 8;
      seen[i] = at >= begin && at < end;
      key[i] = norms[at];
      value[i] = norms[kPiece + at] * root;
      exponent[i] = norm_exponent(value[i]);
    }
    float weights[2][4];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float larger = maximum[h];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weights[h][i] = scores[i / 2].at[2 * h + i % 2] * (scale[h] * key[i]);
        if (seen[i]) larger = fmaxf(larger, weights[h][i] + exponent[i]);
      }
      larger = quad_max(larger);
      const float base = larger == -INFINITY ? 0.0f : larger;
      const float factor = exp2_approx(maximum[h] - base);
      maximum[h] = larger;
      total[h] *= factor;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float score = weights[h][i] - base;
        if (seen[i]) total[h] += exp2_approx(score);
        weights[h][i] = seen[i] ? copysignf(exp2_approx(score + exponent[i]), value[i]) : 0.0f;
      }
#pragma unroll
      for (Sums& one : sums) {
        one.at[2 * h] *= factor;
        one.at[2 * h + 1] *= factor;
      }
    }
    return {half_pair(weights[0][0], weights[0][1]), half_pair(weights[1][0], weights[1][1]),
            half_pair(weights[0][2], weights[0][3]), half_pair(weights[1][2], weights[1][3])};
  }
};

// sums += weights values for the 16 rows of a slot.
template <class Shared, int kBits, int kWidth>
__device__ __forceinline__ void add_values(Sums (&sums)[kWidth / 8], const uint4& weights, const char* own,
                                           const char* slot) {
  using Value = typename Shared::Value;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int word = 0; word < Value::kValueWords; ++word) {
    constexpr int kChunkWords = Value::kValueChunk / 4;
    std::uint32_t rows[4];
#pragma unroll
    for (int r = 0; r < 4; ++r)
      rows[r] = reinterpret_cast<const std::uint32_t*>(
          slot + Shared::kValueAt +
          ((r * Value::kValueChunks + word / kChunkWords) * kWarp + lane) *
              Value::kValueChunk)[word % kChunkWords];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t entry[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) entry[r] = look_up(own, rows[r], i);
      Sums* to = sums + (word * 4 + i) * Value::kPerByte;
      multiply_add_f16(to[0], weights, lower_halves(entry[0], entry[1]), lower_halves(entry[2], entry[3]));
      if constexpr (kBits == 4)
        multiply_add_f16(to[1], weights, upper_halves(entry[0], entry[1]), upper_halves(entry[2], entry[3]));
    }
  }
}

// Joins the warps' results of one split and writes them.
template <class Shared, int kWidth>
__device__ __forceinline__ void join(Stream<kWidth>& stream, char* shared, const AttendCall& call, int split,
                                     int first_head, int heads) {
  constexpr int kStride = Shared::kJoinStride;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  auto* buffers = reinterpret_cast<float*>(shared + Shared::kJoinAt);
  auto* maxima = reinterpret_cast<float*>(shared + Shared::kScaleAt);
  float* totals = maxima + kWarps * kHeads;
  const auto place = [&](int buffer, int i) {
    return reinterpret_cast<float2*>(buffers + (buffer * kHalf + lane / 4) * kStride + i * 8 + lane % 4 * 2);
  };
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float total = quad_sum(stream.total[h]);
    if (lane % 4 == 0) {
      maxima[warp * kHeads + h * kHalf + lane / 4] = stream.maximum[h];
      totals[warp * kHeads + h * kHalf + lane / 4] = total;
    }
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (h * kHalf >= heads) break;
    const int row = h * kHalf + lane / 4;
    float largest = -INFINITY;
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, maxima[w * kHeads + row]);
    const float factor = exp2_approx(stream.maximum[h] - largest);
    for (int step = kWarps / 2; step >= 1; step /= 2) {
      const float scale = step == kWarps / 2 ? factor : 1.0f;
      if (warp < 2 * step) {
#pragma unroll
        for (Sums& one : stream.sums) {
          one.at[2 * h] *= scale;
          one.at[2 * h + 1] *= scale;
        }
      }
      if (warp >= step && warp < 2 * step) {
#pragma unroll
        for (int i = 0; i < kWidth / 8; ++i)
          *place(warp - step, i) = make_float2(stream.sums[i].at[2 * h], stream.sums[i].at[2 * h + 1]);
      }
      __syncthreads();
      if (warp < step) {
#pragma unroll
        for (int i = 0; i < kWidth / 8; ++i) {
          const float2 other = *place(warp, i);
          stream.sums[i].at[2 * h] += other.x;
          stream.sums[i].at[2 * h + 1] += other.y;
        }
      }
      __syncthreads();
    }
    if (warp == 0) {
      float* to = buffers + lane / 4 * kStride;
#pragma unroll
      for (int i = 0; i < kWidth / 8; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          to[Shared::Value::value_coordinate(lane % 4 * 2 + j, i)] = stream.sums[i].at[2 * h + j];
    }
    __syncthreads();
    const int rows = min(heads - h * kHalf, kHalf);
    for (int i = threadIdx.x; i < rows * (kWidth / 4); i += kThreads) {
      const int r = i / (kWidth / 4);
      const long long to = call.partials.index(blockIdx.x, call.heads, first_head + h * kHalf + r, split);
      reinterpret_cast<float4*>(call.partials.sums + to * kWidth)[i % (kWidth / 4)] =
          *reinterpret_cast<const float4*>(buffers + r * kStride + i % (kWidth / 4) * 4);
    }
    if (warp == 0 && lane % 4 == 0 && lane / 4 < rows) {
      float total = 0;
      for (int w = 0; w < kWarps; ++w)
        total += totals[w * kHeads + row] * exp2_approx(maxima[w * kHeads + row] - largest);
      call.partials.scales[call.partials.index(blockIdx.x, call.heads, first_head + row, split)] =
          make_float2(largest * kLn2, total);
    }
    __syncthreads();
  }
}

template <int kKeyBits, int kValueBits, int kWidth>
__global__ void __launch_bounds__(kThreads, 1) packed_kernel(const __grid_constant__ PackedCall call) {
  using Shared = Layout<kKeyBits, kValueBits, kWidth>;
  using Key = typename Shared::Key;
  constexpr int kSteps = kWidth / 16;
  extern __shared__ uint4 dynamic[];
  char* shared = reinterpret_cast<char*>(dynamic);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  char* ring = shared + warp * Shared::kSlots * Shared::kSlotBytes;
  char* key_table = shared + Shared::kTableAt;
  char* value_table = key_table + (Shared::kTables - 1) * kLevelTableBytes;
  auto* queries = reinterpret_cast<uint4*>(shared + Shared::kQueryAt);
  float* factors = reinterpret_cast<float*>(shared + Shared::kScaleAt) + 2 * kWarps * kHeads;
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
  const long long low = tile.first(tile.begin);
  const long long high = tile.last(tile.begin) + 1;
  const int first_split = static_cast<int>(low / kSplitRows) + static_cast<int>(blockIdx.z);
  const int end_split = static_cast<int>((high + kSplitRows - 1) / kSplitRows);
  const int lanes = static_cast<int>(gridDim.z);
  const int units = first_split < end_split ? (end_split - first_split + lanes - 1) / lanes * kPieces : 0;
  const auto row_of = [&](int unit) {
    const int piece = unit % kPieces * kWarps + warp;
    return static_cast<long long>(first_split + unit / kPieces * lanes) * kSplitRows + piece * kPiece;
  };
  const auto in_sight = [&](long long row) { return row + kPiece > low && row < high; };
  const auto fetch = [&](int unit, int slot) {
    const long long row = row_of(unit);
    if (unit < units && in_sight(row))
      fetch_piece<Shared>(keys, values, row, low, high, ring + slot * Shared::kSlotBytes);
    close_copies();
  };
#pragma unroll
  for (int unit = 0; unit + 1 < Shared::kSlots; ++unit) fetch(unit, unit);
  load_queries<kKeyBits, kWidth>(call, tile.begin, first_head, heads,
                                 reinterpret_cast<__half*>(shared + Shared::kJoinAt), queries, factors);
  const float unit_scale = attend.scale * keys.root * kLog2E;
  const float scale[2] = {unit_scale * factors[lane / 4], unit_scale * factors[lane / 4 + 8]};

  Stream<kWidth> stream;
  stream.reset();
  int slot = 0;
  int free_slot = Shared::kSlots - 1;
  for (int unit = 0; unit < units; ++unit) {
    const long long row = row_of(unit);
    fetch(unit + Shared::kSlots - 1, free_slot);
    wait_for_copies<Shared::kSlots - 1>();
    __syncwarp();
    if (in_sight(row)) {
      const char* piece = ring + slot * Shared::kSlotBytes;
      Sums scores[2] = {};
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        std::uint32_t words[Key::kKeyWords];
#pragma unroll
        for (int j = 0; j < Key::kKeyChunks; ++j)
          *reinterpret_cast<uint4*>(words + 4 * j) =
              *reinterpret_cast<const uint4*>(piece + ((h * Key::kKeyChunks + j) * kWarp + lane) * 16);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const uint2 right = key_operand<kKeyBits>(key_table + lane * 4, words, step);
          multiply_add_f16(scores[h], queries[step * kWarp + lane], right.x, right.y);
        }
      }
      const int begin = static_cast<int>(max(low - row, 0LL));
      const int end = static_cast<int>(min(high - row, static_cast<long long>(kPiece)));
      const uint4 weights = stream.weigh(
          scores, scale, reinterpret_cast<const float*>(piece + Shared::kNormAt), values.root, begin, end);
      add_values<Shared, kValueBits, kWidth>(stream.sums, weights, value_table + lane * 4, piece);
    }
    __syncwarp();
    free_slot = slot;
    slot = slot + 1 == Shared::kSlots ? 0 : slot + 1;
    if (unit % kPieces == kPieces - 1) {
      join<Shared>(stream, shared, attend, first_split + unit / kPieces * lanes, first_head, heads);
      stream.reset();
    }
  }
}

template <int kKeyBits, int kValueBits, int kWidth>
void launch_splits(Context& context, const PackedCall& call, const dim3& blocks) {
  launch(context, packed_kernel<kKeyBits, kValueBits, kWidth>,
         {blocks, dim3(kThreads), Layout<kKeyBits, kValueBits, kWidth>::kBytes}, call);
}

}  // namespace

void attend_packed_mma(Context& context, const PackedCall& given, std::byte* scratch) {
  PackedCall call = given;
  AttendCall& attend = call.attend;
  attend.head_tile = std::min(attend.group, kHeads);
  attend.split_rows = kSplitRows;
  const auto heads = static_cast<unsigned>(attend.kv_heads() * attend.head_tiles());
  attend_in_splits(context, attend, scratch, 1, [&](const AttendCall& part, int tokens, int lanes) {
    call.attend = part;
    const dim3 blocks(static_cast<unsigned>(tokens), heads, static_cast<unsigned>(lanes));
    with_packed_format(call, [&]<int kKeyBits, int kValueBits, int kWidth>() {
      launch_splits<kKeyBits, kValueBits, kWidth>(context, call, blocks);
    });
  });
}

}  // namespace sluice::backend::cuda
