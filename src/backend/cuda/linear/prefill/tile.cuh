// How the prefill products divide their output into tiles, and how a block's threads fill shared memory for a
// tile.
//
// A tile is kTileRows output rows of one matrix by kColumns weight rows. With two operands, gate and up rows
// alternate in runs of 16, so that the thread with a gate's sum also has the up's. Shared memory holds 64
// values per row (128 bytes) with swizzled 16-byte chunks: the layout that wgmma calls 128-byte swizzle and
// that ldmatrix reads without bank conflicts.
#pragma once

#include "backend/cuda/linear/prefill/call.h"
#include "backend/cuda/linear/prefill/slice.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill {

inline constexpr int kTileDepth = 64;  // values of K per stage
inline constexpr int kRowBytes = kTileDepth * 2;
inline constexpr int kOperandRun = 16;

struct Tile {
  int matrix;
  int first;   // row in the matrix's bucket
  int rows;    // at most kTileRows
  int column;  // first output column
};

__device__ __forceinline__ int count_tiles(const PrefillCall& call) {
  if (call.buckets.present()) return *call.buckets.tile_count * call.column_tiles;
  return call.row_tiles * call.column_tiles * to_int(call.linear.slots);
}

// Neighbours in the order run at the same time and should share what they read: the column tiles of an
// expert, or a band of row tiles over one strip of weights, narrow enough for x to stay in the L2 cache.
template <int kColumns>
__device__ __forceinline__ Tile tile_at(const PrefillCall& call, int index) {
  constexpr int kBand = 32;
  const int columns = kColumns / call.linear.operands;
  if (call.buckets.present()) {
    const BucketTile tile = call.buckets.tiles[index / call.column_tiles];
    return {tile.matrix, tile.first, tile.rows, index % call.column_tiles * columns};
  }
  const int in_matrix = index % (call.row_tiles * call.column_tiles);
  const int band = in_matrix / (kBand * call.column_tiles);
  const int in_band = in_matrix - band * kBand * call.column_tiles;
  const int height = min(kBand, call.row_tiles - band * kBand);
  const int first = (band * kBand + in_band % height) * kTileRows;
  return {index / (call.row_tiles * call.column_tiles), first,
          min(kTileRows, to_int(call.linear.tokens) - first), in_band / height * columns};
}

// Token and slot of a row of the tile.
struct TileRow {
  unsigned token;
  unsigned slot;
};
__device__ __forceinline__ TileRow row_of(const PrefillCall& call, const Tile& tile, int r) {
  if (!call.buckets.present()) return {to_unsigned(tile.first + r), to_unsigned(tile.matrix)};
  const auto pair = to_unsigned(call.buckets.order[tile.first + r]);
  const auto slots = to_unsigned(call.linear.slots);
  return {pair / slots, pair % slots};
}

// One of the kThreads threads that fill stages; for each stage it copies some chunks of x and some slices of
// weights.
template <Storage kStorage, int kColumns, int kThreads>
class TileLoader {
 public:
  static constexpr int kXBytes = kTileRows * kRowBytes;
  static constexpr int kStageBytes = kXBytes + kColumns * kRowBytes;
  static constexpr int kSlices = kColumns * 2 / kThreads;
  struct Slices {
    SliceOf<kStorage> at[kSlices];
  };

  __device__ __forceinline__ TileLoader(const PrefillCall& call, int thread) : call_(call), thread_(thread) {}

  // Computes the addresses of the tile's rows.
  __device__ __forceinline__ void begin(const Tile& tile) {
    const LinearCall& linear = call_.linear;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      x_[i] = kAbsent;
      if (chunk_row(i) >= tile.rows) continue;
      const TileRow row = row_of(call_, tile, chunk_row(i));
      x_[i] = to_unsigned((row.token * linear.x_token + row.slot * linear.x_slot) / 8);
    }
    const int row = thread_ / 2;
    const bool second = linear.operands == 2 && row / kOperandRun % 2 == 1;
    const MatrixPointers matrix = second ? linear.w[1][tile.matrix] : linear.w[0][tile.matrix];
    column_ = tile.column +
              (linear.operands == 2 ? row / (2 * kOperandRun) * kOperandRun + row % kOperandRun : row);
    const Matrices& w = linear.w[0];
    w_ = {matrix.values + column_ * w.row_bytes, matrix.scales + column_ * w.scale_row_bytes,
          matrix.biases + column_ * w.scale_row_bytes};
  }

  // Starts to load the stage's 64 values from k on; they are complete after finish() and the end of the
  // thread's asynchronous copies.
  __device__ __forceinline__ void fetch(int k, std::byte* stage, Slices& slices) const {
    const int inputs = to_int(call_.linear.inputs);
    const int chunk = thread_ % 8;
    const Bf16* x = static_cast<const Bf16*>(call_.linear.x) + k + chunk * 8;
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
      copy_16(stage + chunk_row(i) * kRowBytes + (chunk ^ chunk_row(i) % 8) * 16,
              x + static_cast<std::uint64_t>(x_[i]) * 8, x_[i] != kAbsent && k + chunk * 8 < inputs);
    const int first = k + thread_ % 2 * kSlice;
    const SlicePlace place{first, first >> call_.group_shift, inputs - first};
#pragma unroll
    for (int i = 0; i < kSlices; ++i)
      slices.at[i].fetch(call_.linear.w[0], source(i), place, target(stage, i));
  }
  __device__ __forceinline__ void finish(std::byte* stage, const Slices& slices) const {
#pragma unroll
    for (int i = 0; i < kSlices; ++i) slices.at[i].finish(call_.linear.w[0], target(stage, i));
  }

 private:
  static constexpr int kChunks = kTileRows * 8 / kThreads;
  static constexpr int kSliceStep = kThreads / 2;  // tile rows between a thread's slices
  static constexpr std::uint32_t kAbsent = 0xffffffffu;
  static_assert(kSliceStep % (2 * kOperandRun) == 0, "all slices of a thread are of one operand");

  __device__ __forceinline__ int chunk_row(int i) const {
    return thread_ / 8 + i * (kThreads / 8);
  }
  __device__ __forceinline__ SliceTarget target(std::byte* stage, int i) const {
    const int row = thread_ / 2 + i * kSliceStep;
    return {stage + kXBytes + row * kRowBytes, thread_ % 2 * 4, row % 8};
  }
  __device__ __forceinline__ SliceSource source(int i) const {
    const Matrices& w = call_.linear.w[0];
    const int below = i * kSliceStep >> (call_.linear.operands - 1);
    if (column_ + below >= call_.linear.outputs) return {};
    return {w_.values + below * w.row_bytes, w_.scales + below * w.scale_row_bytes,
            w_.biases + below * w.scale_row_bytes};
  }

  const PrefillCall& call_;
  int thread_;
  std::uint32_t x_[kChunks];  // in chunks from the start of x
  SliceSource w_;             // the row of the first slice
  int column_;                // and its output column
};

}  // namespace sluice::backend::cuda::linear::prefill
