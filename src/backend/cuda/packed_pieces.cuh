// What the decode kernel for packed caches reads: its place in shared memory, the queries, the rows.
#pragma once

#include "backend/cuda/attend_packed.h"
#include "backend/cuda/packed_format.cuh"

namespace sluice::backend::cuda {

inline constexpr int kPiece = 16;  // rows that a warp takes at a time
inline constexpr int kTileHeads = 8;

// kTiles: of eight heads.
template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
struct PackedLayout {
  using Key = PackedFormat<kKeyBits, kWidth>;
  using Value = PackedFormat<kValueBits, kWidth>;
  static constexpr int kHeads = kTiles * kTileHeads;
  static constexpr int kValueAt = kPiece * Key::kRowBytes;
  static constexpr int kNormAt = kValueAt + kPiece * Value::kRowBytes;
  static constexpr int kSlotBytes = kNormAt + 2 * kPiece * 4;
  // As many warps as their sums leave registers and their rings shared memory for.
  static constexpr bool kMany = kTiles * kWidth <= 256 && 32 * kSlotBytes <= 140 * 1024;
  static constexpr int kWarps = kMany ? 16 : 8;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kPieces =
      kPackedSplitRows / kPiece / kWarps;  // of a warp in a split, before it is doubled
  static constexpr int kSlots = !kMany && kWarps * 3 * kSlotBytes <= 110 * 1024 ? 3 : 2;
  static constexpr int kSteps = kWidth / 16;
  static constexpr int kWarpSums = kTiles * kSteps * 4 * kWarp;  // floats
  static constexpr int kRingBytes = kWarps * kSlots * kSlotBytes;
  static_assert(kWarps / 2 * kWarpSums * 4 <= kRingBytes, "sums of half the warps replace the rings");
  static constexpr int kTables = kKeyBits == kValueBits ? 1 : 2;
  static constexpr int kTableAt = kRingBytes;
  static constexpr int kStagedAt = kTableAt + kTables * kLevelTableBytes;
  static constexpr int kQueryAt = kStagedAt + kHeads * kWidth * 2;
  static constexpr int kScaleAt = kQueryAt + kTiles * kSteps * kWarp * 8;
  static constexpr int kBytes = kScaleAt + (2 * kWarps + 1) * kHeads * 4;
};

// The block's query heads, rotated and scaled by a power of two each, as right operands in lane order.
template <class Shared, int kWidth>
__device__ __forceinline__ void load_queries(const PackedCall& call, int token, int first_head, int heads,
                                             __half* staged, uint2* queries, float* factors) {
  constexpr int kCount = kWidth / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int head = threadIdx.x / kWarp; head < Shared::kHeads; head += Shared::kWarps) {
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
  for (int i = threadIdx.x; i < Shared::kHeads / kTileHeads * Shared::kSteps * kWarp; i += Shared::kThreads) {
    const int l = i % kWarp;
    const int head = i / (Shared::kSteps * kWarp) * kTileHeads + l / 4;
    const auto pair = [&](int part) {
      const int d = Shared::Key::key_coordinate(l % 4, i / kWarp % Shared::kSteps * 4 + part * 2);
      return *reinterpret_cast<const std::uint32_t*>(staged + head * kWidth + d);
    };
    queries[i] = {pair(0), pair(1)};
  }
  __syncthreads();
}

// The rows of one sequence and KV head on their ring; a cache has less than 2^31 rows.
struct PieceSource {
  const unsigned char* keys;
  const unsigned char* values;
  const float* key_norms;
  const float* value_norms;
  int key_stride;  // bytes
  int value_stride;
  int ring_start;
  int capacity;
  int low;  // rows in sight: [low, high)
  int high;

  __device__ __forceinline__ PieceSource(const PackedRows& k, const PackedRows& v, long long first,
                                         long long last)
      : keys(k.codes),
        values(v.codes),
        key_norms(k.norms),
        value_norms(v.norms),
        key_stride(static_cast<int>(k.stride)),
        value_stride(static_cast<int>(v.stride)),
        ring_start(static_cast<int>(k.ring_start)),
        capacity(static_cast<int>(k.capacity)),
        low(static_cast<int>(first)),
        high(static_cast<int>(last) + 1) {}

  __device__ __forceinline__ bool in_sight(int row) const { return row + kPiece > low && row < high; }
  __device__ __forceinline__ int slot_of(int row) const {
    const unsigned at = static_cast<unsigned>(ring_start) + static_cast<unsigned>(row);
    return static_cast<int>(at >= static_cast<unsigned>(capacity) ? at - static_cast<unsigned>(capacity)
                                                                  : at);
  }

  // One warp's fetches of the piece from `row` on: lane l has rows l/4 and l/4 + 8 of the keys, and rows
  // 2(l%4), the next, and both + 8 of the values.
  template <class Shared>
  __device__ __forceinline__ void fetch(int row, char* to) const {
    const int first = slot_of(row);
    if (row >= low && row + kPiece <= high && first + kPiece <= capacity)
      fetch_rows<Shared>([&](int r) { return first + r; }, to);
    else
      fetch_rows<Shared>([&](int r) { return row + r >= low && row + r < high ? slot_of(row + r) : -1; }, to);
  }

 private:
  // `slot(r)`: where row r of the piece lies, or -1 where it is out of sight.
  template <class Shared, class SlotOf>
  __device__ __forceinline__ void fetch_rows(SlotOf&& slot, char* to) const {
    using Key = typename Shared::Key;
    using Value = typename Shared::Value;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int at = slot(lane / 4 + h * 8);
      if (at < 0) continue;
      const unsigned char* from = keys + static_cast<long long>(at) * key_stride + lane % 4 * 16;
#pragma unroll
      for (int j = 0; j < Key::kKeyChunks; ++j)
        copy_16(to + ((h * Key::kKeyChunks + j) * kWarp + lane) * 16, from + j * 64, true);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int at = slot(lane % 4 * 2 + r % 2 + r / 2 * 8);
      if (at < 0) continue;
      const unsigned char* from =
          values + static_cast<long long>(at) * value_stride + lane / 4 * Value::kValueChunk;
      char* const chunks = to + Shared::kValueAt;
#pragma unroll
      for (int j = 0; j < Value::kValueChunks; ++j)
        copy_chunk<Value::kValueChunk>(
            chunks + ((r * Value::kValueChunks + j) * kWarp + lane) * Value::kValueChunk,
            from + j * 8 * Value::kValueChunk);
    }
    const int at = slot(lane % kPiece);
    if (at >= 0) copy_4(to + Shared::kNormAt + lane * 4, (lane < kPiece ? key_norms : value_norms) + at);
  }
};

}  // namespace sluice::backend::cuda
