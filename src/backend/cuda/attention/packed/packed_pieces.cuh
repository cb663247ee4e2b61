// The inputs of the decode kernel for packed caches: its layout of shared memory, the queries, the rows.
#pragma once

#include "backend/cuda/attention/packed/attend.h"
#include "backend/cuda/attention/packed/packed_format.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::packed {

inline constexpr int kPiece = 16;  // rows of keys that a warp processes at a time; twice as many of values
inline constexpr int kTileHeads = 8;

// Shared memory: what precedes the table of levels, the table, the rest. The table is aligned to its size of
// 64 KB, so replacing the second byte of a lane's address by a code is the whole address computation. kTiles:
// number of tiles of eight heads.
template <int kKeyBits, int kValueBits, int kWidth, int kTiles>
struct PackedLayout {
  using Key = PackedFormat<kKeyBits, kWidth>;
  using Value = PackedFormat<kValueBits, kWidth / 2>;  // a warp's half of the coordinates
  static constexpr int kHeads = kTiles * kTileHeads;
  static constexpr int kSteps = kWidth / 16;
  static constexpr int kHalfSteps = kSteps / 2;
  static constexpr int kValueAt = kPiece * Key::kRowBytes;
  static constexpr int kNormAt = kValueAt + 2 * kPiece * Value::kRowBytes;
  static constexpr int kSlotBytes = kNormAt + 2 * kPiece * 4;
  // As many warps as there is shared memory for ring buffers and there are registers for accumulators.
  static constexpr int kWarps = 24 * kSlotBytes > 102 * 1024 || kTiles == 2 ? 8 : 12;
  static constexpr int kSlots = kWarps == 8 && 24 * kSlotBytes <= 136 * 1024 ? 3 : 2;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kRingBytes = kSlots * kSlotBytes;
  static_assert(kTileHeads * (kWidth / 2) * 4 <= kRingBytes, "sums replace the ring");

  static constexpr int kTableBytes = 64 * 1024;
  static constexpr int kScaleBytes = (4 * kWarps + 1) * kHeads * 4;  // factors, maxima, totals, two of peaks
  static constexpr int kRingsBefore = (63 * 1024 - kScaleBytes) / kRingBytes;  // before the table
  static constexpr int kFirstRings = kRingsBefore < kWarps ? kRingsBefore : kWarps;
  static constexpr int kQueryAt = (kWarps - kFirstRings) * kRingBytes;  // after the table
  static constexpr int kQueryBytes = kTiles * kSteps * kWarp * 8;
  static constexpr int kWeightAt = kQueryAt + kQueryBytes;
  static constexpr int kWeightBytes = 2 * kWarps * kTiles * kWarp * 8;
  static constexpr int kStagedBytes = kHeads * kWidth * 2;  // queries are staged in the memory of the weights
  static constexpr int kBytes =
      2 * kTableBytes + kWeightAt + (kWeightBytes > kStagedBytes ? kWeightBytes : kStagedBytes);
  static_assert(kBytes <= 227 * 1024);

  static __device__ __forceinline__ char* table(char* shared) {
    return shared + (kTableBytes - shared_address(shared));
  }
  static __device__ __forceinline__ char* behind(char* shared) { return table(shared) + kTableBytes; }
  static __device__ __forceinline__ char* ring(char* shared, int warp) {
    return warp < kFirstRings ? shared + kScaleBytes + warp * kRingBytes
                              : behind(shared) + (warp - kFirstRings) * kRingBytes;
  }
};

// A table entry: the keys' level for 32 lanes, then the values'.
inline constexpr int kPairEntryBytes = 2 * kWarp * 4;

// The entry of byte `i` of a word; `own` is the address of the lane's part of entry 0.
__device__ __forceinline__ std::uint32_t find_levels(std::uint32_t own, std::uint32_t word, int i) {
  std::uint32_t levels;
  asm("ld.shared.u32 %0, [%1];" : "=r"(levels) : "r"(__byte_perm(word, own, 0x7604 | i << 4)));
  return levels;
}
// The address of the lane's part of entry 0. Volatile, so that it is not used before the table is filled.
__device__ __forceinline__ std::uint32_t own_levels(const char* entries) {
  std::uint32_t own;
  asm volatile("mov.u32 %0, %1;"
               : "=r"(own)
               : "r"(shared_address(entries) + threadIdx.x % kWarp * 4)
               : "memory");
  return own;
}

// The block's query heads, distributed round-robin over the warps.
template <class Shared, int kWidth>
struct QueryHeads {
  static constexpr int kCount = kWidth / kWarp;
  static constexpr int kHeads = (Shared::kHeads + Shared::kWarps - 1) / Shared::kWarps;
  float q[kHeads][kCount];

  __device__ __forceinline__ QueryHeads(const HeadRows& queries, int token, int first_head, int heads) {
    const int lane = to_int(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kHeads; ++i) {
      const int head = to_int(threadIdx.x) / kWarp + i * Shared::kWarps;
      const auto* from = static_cast<const Bf16*>(queries.data) + token * queries.token_stride +
                         (first_head + head) * queries.head_stride;
#pragma unroll
      for (int r = 0; r < kCount; ++r) q[i][r] = head < heads ? to_float(from[lane + r * kWarp]) : 0.0f;
    }
  }

  // Stores them rotated, each scaled by a power of two, as right operands of two steps at a time, in lane
  // order.
  __device__ __forceinline__ void store(const PackedCall& call, __half* staged, uint4* operands,
                                        float* factors) {
    const int lane = to_int(threadIdx.x) % kWarp;
#pragma unroll
    for (int i = 0; i < kHeads; ++i) {
      const int head = to_int(threadIdx.x) / kWarp + i * Shared::kWarps;
      if (head >= Shared::kHeads) break;
      const float factor = rotate_query(q[i], call.signs, call.rotated);
#pragma unroll
      for (int r = 0; r < kCount; ++r) staged[head * kWidth + lane + r * kWarp] = __float2half(q[i][r]);
      if (lane == 0) factors[head] = factor;
    }
    __syncthreads();
    constexpr int kPairs = Shared::kSteps / 2;
    for (int i = threadIdx.x; i < Shared::kHeads / kTileHeads * kPairs * kWarp; i += Shared::kThreads) {
      const int l = i % kWarp;
      const int head = i / (kPairs * kWarp) * kTileHeads + l / 4;
      const auto two = [&](int part) {
        const int d = Shared::Key::key_coordinate(l % 4, i / kWarp % kPairs * 8 + part * 2);
        return *reinterpret_cast<const std::uint32_t*>(staged + head * kWidth + d);
      };
      operands[i] = {two(0), two(1), two(2), two(3)};
    }
    __syncthreads();
  }
};

// Rows of codes as 16-byte chunks in shared memory, placed so that neither copies nor the lanes' reads of
// rows have bank conflicts. Places are linear in the bits of a chunk's number: for numbers without common
// bits, place(a + b) = place(a) ^ place(b).
template <int kRowBytes>
struct CodeTile {
  static constexpr int kChunks = kRowBytes / 16;

  static constexpr __host__ __device__ int place(int chunk) {
    const int key = kRowBytes >= 128 ? chunk / kChunks : chunk / 8;
    return (chunk ^ ((key & 1) << 2 ^ (key >> 1 & 3) << 1)) * 16;
  }
  // The place of the chunk at a constant `distance` after the lane's first one.
  static __device__ __forceinline__ int behind(int first_place, int distance) {
    return (first_place ^ (place(distance) & 127)) + (place(distance) & ~127);
  }
};

// The rows of one sequence and KV head; a cache has less than 2^31 rows.
struct PieceSource {
  const unsigned char* keys;
  const unsigned char* values;
  const float* key_norms;
  const float* value_norms;
  int key_stride;  // bytes
  int value_stride;
  int ring_start;
  int capacity;
  int low;  // visible rows: [low, high)
  int high;
  long long key_page;  // bytes between pages; for norms, floats
  long long value_page;
  long long key_norm_page;
  long long value_norm_page;
  SequencePages pages;

  __device__ __forceinline__ PieceSource(const PackedRows& k, const PackedRows& v, long long first,
                                         long long last)
      : keys(k.codes),
        values(v.codes),
        key_norms(k.norms),
        value_norms(v.norms),
        key_stride(to_int(k.stride)),
        value_stride(to_int(v.stride)),
        ring_start(to_int(k.ring_start)),
        capacity(k.pages.paged() ? INT_MAX : to_int(k.capacity)),
        low(to_int(first)),
        high(to_int(last) + 1),
        key_page(k.code_page_stride),
        value_page(v.code_page_stride),
        key_norm_page(k.norm_page_stride),
        value_norm_page(v.norm_page_stride),
        pages(k.pages) {}

  // One warp's copies for the 32 rows from `row` on: the keys and norms of half of them, and half of the
  // values of all, in the page that a table entry names. Instead of a row that is not visible, the nearest
  // visible one is read.
  template <class Shared>
  __device__ __forceinline__ void fetch(int row, int entry, int half, char* to) const {
    const int page = pages.page(entry);
    const int first = slot_of(max(row, low));
    if (row >= low && row + 2 * kPiece <= high && first <= capacity - 2 * kPiece)
      fetch_rows<Shared>([&](int r) { return first + r; }, page, half, to);
    else
      fetch_rows<Shared>([&](int r) { return slot_of(min(max(row + r, low), high - 1)); }, page, half, to);
  }
  // The table entry for the 32 rows from `row` on, some of which are visible.
  __device__ __forceinline__ int entry_of(int row) const { return pages.entry(max(row, low)); }

 private:
  __device__ __forceinline__ int slot_of(int row) const {
    if (pages.paged()) return to_int(pages.within(row));
    const unsigned at = to_unsigned(ring_start) + to_unsigned(row);
    return to_int(at >= to_unsigned(capacity) ? at - to_unsigned(capacity) : at);
  }
  // `slot(r)`: the place of row r.
  template <class Shared, class SlotOf>
  __device__ __forceinline__ void fetch_rows(SlotOf&& slot, int page, int half, char* to) const {
    const int lane = to_int(threadIdx.x) % kWarp;
    const long long skipped = pages.paged() ? page : 0;
    copy_rows<kPiece, Shared::Key::kRowBytes>([&](int r) { return slot(half * kPiece + r); },
                                              keys + skipped * key_page, key_stride, to);
    copy_rows<2 * kPiece, Shared::Value::kRowBytes>(
        slot, values + skipped * value_page + half * Shared::Value::kRowBytes, value_stride,
        to + Shared::kValueAt);
    const float* norms =
        lane < kPiece ? key_norms + skipped * key_norm_page : value_norms + skipped * value_norm_page;
    copy_4(to + Shared::kNormAt + lane * 4, norms + slot(half * kPiece + lane % kPiece));
  }
  template <int kRows, int kRowBytes, class SlotOf>
  static __device__ __forceinline__ void copy_rows(SlotOf&& slot, const unsigned char* from, int stride,
                                                   char* to) {
    using Tile = CodeTile<kRowBytes>;
    const int lane = to_int(threadIdx.x) % kWarp;
    const int first = Tile::place(lane);
#pragma unroll
    for (int i = 0; i < kRows * Tile::kChunks / kWarp; ++i)
      copy_16(to + Tile::behind(first, i * kWarp),
              from + static_cast<long long>(slot((i * kWarp + lane) / Tile::kChunks)) * stride +
                  lane % Tile::kChunks * 16,
              true);
  }
};

}  // namespace sluice::backend::cuda::attention::packed
