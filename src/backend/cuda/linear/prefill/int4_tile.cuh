// What the two prefill kernels for 4-bit weights (int4_wgmma.cu, int4_exact.cu) share: tiles, the ring buffer
// of stages that feeds them, the roles of the warpgroups, and writing results.
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/linear/prefill/call.h"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear::prefill::int4 {

constexpr int kDepth = 64;  // values of K per stage
constexpr int kCodeBytes = kDepth / 2;
constexpr int kXRowBytes = kDepth * 2;
constexpr int kScaleBytes = 8;     // four groups
constexpr int kMultipliers = 256;  // threads
constexpr int kLoaders = 128;
constexpr int kAlignment = 1024;  // of swizzled rows
constexpr int kManyTokens = 128;  // per tile
constexpr int kFewTokens = 32;
constexpr int kStripTokens = 64;
constexpr int kStripRowBytes = 128;

// A tile of kBlocks blocks of 64 weight rows per multiplying warpgroup by up to kTokens tokens, for one
// matrix or for a gate and an up, and the layout of its shared memory. Inputs are sums of kTerms BF16
// numbers.
template <int kWarpgroupBlocks, int kMostTokens, int kMatrices, int kSummands = 1>
struct Shape {
  static constexpr int kBlocks = kWarpgroupBlocks;
  static constexpr int kTokens = kMostTokens;
  static constexpr int kOperands = kMatrices;
  static constexpr int kTerms = kSummands;
  static constexpr int kRows = 128 * kBlocks;
  static constexpr int kColumns = kRows / kOperands;
  static constexpr int kTermBytes = kTokens * kXRowBytes;
  static constexpr int kX = kTerms * kTermBytes;
  static constexpr int kStageBytes = kX + kRows * kCodeBytes;
  // With few tokens the tensor cores have little work; two blocks per multiprocessor then hide each other's
  // latencies.
  static constexpr int kBlocksPerProcessor = kTokens < 128 ? 2 : 1;
  static constexpr int kStages = kTerms > 1 ? 4 : kTokens < 128 ? 6 : kBlocks == 2 ? 7 : 9;
  // A block of scales covers at least two stages; there must be room for the scales of all stages in the ring
  // and for those being loaded.
  static constexpr int kScaleBlocks = kStages / 2 + 1;
  static constexpr int kScaleBlockBytes = 2 * kRows * kScaleBytes;
  static constexpr int kScalesAt = kStages * kStageBytes;
  static constexpr int kStagingAt = kScalesAt + kScaleBlocks * kScaleBlockBytes;
  static constexpr int kStagingBytes = (kTokens < kStripTokens ? kTokens : kStripTokens) * kStripRowBytes;
  // Input sums of each stage if inputs have several terms; results are then written without staging.
  static constexpr int kSumsAt = kStagingAt;
  static constexpr int kSumBytes = kTokens * to_int(sizeof(float));
  static constexpr int kBytes = kStagingAt + (kTerms > 1 ? kStages * kSumBytes : 2 * kStagingBytes);
  static_assert(kStageBytes % kAlignment == 0);
  static_assert(kOperands == 1 || kBlocks == 2);
  static_assert(kBlocksPerProcessor * (kBytes + kAlignment + 1024) <= 228 * 1024);
};

// Registers per thread for the two roles.
template <class S>
struct Registers {
  static constexpr int kMultiplier = S::kBlocksPerProcessor == 2 ? 96 : 208;
  static constexpr int kLoader = S::kBlocksPerProcessor == 2 ? 48 : 88;
  static constexpr int kAtStart = S::kBlocksPerProcessor == 2 ? 80 : 168;
  static_assert(kMultiplier * kMultipliers + kLoader * kLoaders <= kAtStart * (kMultipliers + kLoaders));
};

struct Tile {
  int matrix;
  int first;   // token, or index into the order of the expert's bucket
  int tokens;  // at most the shape's
  int column;  // first output column
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ __forceinline__ int tile_count(const PrefillCall& call) {
  if (call.buckets.present()) return *call.buckets.tile_count * call.column_tiles;
  return call.row_tiles * call.column_tiles * to_int(call.linear.slots);
}

// Neighbours in the order run at the same time and should share what they read: the column tiles of an
// expert, or a band of tokens over one strip of weights, narrow enough for x to stay in the L2 cache.
template <class S>
__device__ __forceinline__ Tile tile_at(const PrefillCall& call, int index) {
  constexpr int kBand = 4096 / S::kTokens;
  if (call.buckets.present()) {
    const BucketTile tile = call.buckets.tiles[index / call.column_tiles];
    return {tile.matrix, tile.first, tile.rows, index % call.column_tiles * S::kColumns};
  }
  const int in_matrix = index % (call.row_tiles * call.column_tiles);
  const int band = in_matrix / (kBand * call.column_tiles);
  const int in_band = in_matrix - band * kBand * call.column_tiles;
  const int height = min(kBand, call.row_tiles - band * kBand);
  const int first = (band * kBand + in_band % height) * S::kTokens;
  return {index / (call.row_tiles * call.column_tiles), first,
          min(S::kTokens, to_int(call.linear.tokens) - first), in_band / height * S::kColumns};
}

// Offset of row r of a tile of x or of the result, in elements. A token's slots are usually contiguous, which
// needs no division.
__device__ __forceinline__ long long row_offset(const PrefillCall& call, const Tile& tile, int r,
                                                long long token_step, long long slot_step) {
  if (!call.buckets.present()) return (tile.first + r) * token_step + tile.matrix * slot_step;
  const auto pair = to_unsigned(call.buckets.order[tile.first + r]);
  const auto slots = to_unsigned(call.linear.slots);
  if (token_step == call.linear.slots * slot_step) return pair * slot_step;
  return pair / slots * token_step + pair % slots * slot_step;
}

// The output column, relative to the tile, of row r of the 16 rows of slab `slab`; a slab is a warp's part of
// a block of 64 rows. With two operands, rows 0-7 are the gate's and rows 8-15 the up's.
template <class S>
__device__ __forceinline__ int column_of(int slab, int r) {
  return S::kOperands == 1 ? slab * 16 + r : slab * 8 + r % 8;
}

// Offset in a row of codes of its 16-byte half `half`: the same half of any eight neighbouring rows is in
// different banks.
__device__ __forceinline__ int code_place(int row, int half) {
  return (half ^ row / 4 % 2) * 16;
}

template <int kBytes>
__device__ __forceinline__ void copy_bytes(void* to, const void* from) {
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes)
                 : "memory");
}

template <class S>
struct Ring : StageRing<S::kStages> {
  using StageRing<S::kStages>::memory;
  using StageRing<S::kStages>::turn;
  int block = 0;  // current block of scales

  __device__ __forceinline__ std::byte* x() const { return memory + turn.index * S::kStageBytes; }
  __device__ __forceinline__ std::byte* codes() const { return x() + S::kX; }
  __device__ __forceinline__ std::byte* scales() const {
    return memory + S::kScalesAt + block * S::kScaleBlockBytes;
  }
  __device__ __forceinline__ std::byte* biases() const { return scales() + S::kScaleBlockBytes / 2; }
  __device__ __forceinline__ std::byte* staging() const { return memory + S::kStagingAt; }
  __device__ __forceinline__ float* input_sums() const {
    return reinterpret_cast<float*>(memory + S::kSumsAt + turn.index * S::kSumBytes);
  }
  __device__ __forceinline__ void next(bool next_block) {
    if (next_block) block = block + 1 < S::kScaleBlocks ? block + 1 : 0;
    turn.next();
  }
};

// A loading thread's part of every stage of a tile. Rows past the tile's tokens or the matrix are not copied:
// stale memory there only affects sums that are not stored.
template <class S>
class Copies {
 public:
  __device__ __forceinline__ Copies(const PrefillCall& call, const Tile& tile)
      : call_(call), thread_(to_int(threadIdx.x) - kMultipliers), tokens_(tile.tokens) {
    const LinearCall& linear = call.linear;
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
      x_[i] = x_row(i) < tile.tokens
                  ? to_unsigned(row_offset(call, tile, x_row(i), linear.x_token, linear.x_slot) / 8)
                  : 0;
    const auto matrix_of = [&](int r) {
      return linear.w[S::kOperands == 2 && r % 16 >= 8 ? 1 : 0][tile.matrix];
    };
    const Matrices& w = linear.w[0];
    code_column_ = tile.column + column_of<S>(thread_ / 2 / 16, thread_ / 2 % 16);
    codes_ = matrix_of(thread_ / 2).values + code_column_ * w.row_bytes + thread_ % 2 * 16;
    scale_column_ = tile.column + column_of<S>(thread_ / 16, thread_ % 16);
    const MatrixPointers scaled = matrix_of(thread_);
    scales_ = scaled.scales + scale_column_ * w.scale_row_bytes;
    biases_ = scaled.biases + scale_column_ * w.scale_row_bytes;
    if constexpr (S::kTerms > 1)
      if (thread_ < tile.tokens)
        sums_ = call.input_sums +
                row_offset(call, tile, thread_, linear.x_token, linear.x_slot) / (S::kTerms * kDepth);
  }

  __device__ __forceinline__ void values(const Ring<S>& ring, int k) const {
    const LinearCall& linear = call_.linear;
    const int chunk = thread_ % 8;
    const Bf16* x = static_cast<const Bf16*>(linear.x) + k + chunk * 8;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int row = x_row(i);
      if (row >= tokens_) continue;
#pragma unroll
      for (int term = 0; term < S::kTerms; ++term)
        copy_bytes<16>(ring.x() + term * S::kTermBytes + row * kXRowBytes + (chunk ^ row % 8) * 16,
                       x + static_cast<std::uint64_t>(x_[i]) * 8 + term * linear.inputs);
    }
    if constexpr (S::kTerms > 1)
      if (thread_ < tokens_) copy_bytes<4>(ring.input_sums() + thread_, sums_ + k / kDepth);
#pragma unroll
    for (int i = 0; i < 2 * S::kBlocks; ++i) {
      const int row = thread_ / 2 + 64 * i;
      constexpr int kBelow = 64 / S::kOperands;
      if (code_column_ + kBelow * i < linear.outputs)
        copy_bytes<16>(ring.codes() + row * kCodeBytes + code_place(row, thread_ % 2),
                       codes_ + kBelow * i * linear.w[0].row_bytes + k / 2);
    }
  }
  // Scales and biases of the four groups from k on.
  __device__ __forceinline__ void scales(const Ring<S>& ring, int k) const {
    const long long row_bytes = call_.linear.w[0].scale_row_bytes;
    const int first = (k >> call_.group_shift) * 2;
#pragma unroll
    for (int i = 0; i < S::kBlocks; ++i) {
      constexpr int kBelow = 128 / S::kOperands;
      if (scale_column_ + kBelow * i >= call_.linear.outputs) continue;
      const int to = (thread_ + 128 * i) * kScaleBytes;
      copy_bytes<kScaleBytes>(ring.scales() + to, scales_ + kBelow * i * row_bytes + first);
      copy_bytes<kScaleBytes>(ring.biases() + to, biases_ + kBelow * i * row_bytes + first);
    }
  }

 private:
  static constexpr int kChunks = S::kTokens * 8 / kLoaders;
  __device__ __forceinline__ int x_row(int i) const {
    return thread_ / 8 + i * (kLoaders / 8);
  }

  const PrefillCall& call_;
  int thread_;
  int tokens_;
  std::uint32_t x_[kChunks];  // in 16-byte chunks from the start of x
  const std::byte* codes_;
  const std::byte* scales_;
  const std::byte* biases_;
  const float* sums_ = nullptr;
  int code_column_;
  int scale_column_;
};

// The loop of the loading warpgroup.
template <class S>
__device__ __forceinline__ void load_tiles(const PrefillCall& call, Ring<S> ring) {
  const int inputs = to_int(call.linear.inputs);
  const int tiles = tile_count(call);
  const int in_block = (4 << call.group_shift) - 1;  // mask: values of K whose scales are copied at once
  for (int index = blockIdx.x; index < tiles; index += to_int(gridDim.x)) {
    const Copies<S> copies(call, tile_at<S>(call, index));
    for (int k = 0; k < inputs; k += kDepth) {
      ring.wait_until_empty();
      if ((k & in_block) == 0) copies.scales(ring, k);
      copies.values(ring, k);
      ring.full[ring.turn.index].arrive_after_copies();
      ring.next(((k + kDepth) & in_block) == 0);
    }
  }
}

// Calls multiply.operator()<kTokens>(tile, ring) for each tile of the block. kTokens is the shape's number of
// tokens or, if that is enough, half of it.
template <class S, class Multiply>
__device__ __forceinline__ void multiply_tiles(const PrefillCall& call, Ring<S> ring,
                                               const Multiply& multiply) {
  const int tiles = tile_count(call);
  for (int index = blockIdx.x; index < tiles; index += to_int(gridDim.x)) {
    const Tile tile = tile_at<S>(call, index);
    if (tile.tokens > S::kTokens / 2)
      multiply.template operator()<S::kTokens>(tile, ring);
    else
      multiply.template operator()<S::kTokens / 2>(tile, ring);
  }
}

// The kernel of a block: two warpgroups multiply, one loads.
template <class S, class Multiply>
__device__ __forceinline__ void load_and_multiply(const PrefillCall& call, const Multiply& multiply) {
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ Barrier full[S::kStages];
  __shared__ Barrier empty[S::kStages];
  set_up_ring(full, kLoaders, empty, kMultipliers / kWarp);
  wait_for_inputs();
  allow_successor();
  std::byte* memory = shared + (kAlignment - shared_address(shared) % kAlignment) % kAlignment;
  const Ring<S> ring{{memory, full, empty}};
  if (threadIdx.x < kMultipliers) {
    take_registers<Registers<S>::kMultiplier>();
    multiply_tiles(call, ring, multiply);
  } else {
    give_registers<Registers<S>::kLoader>();
    load_tiles<S>(call, ring);
  }
}

// A barrier for the threads of one multiplying warpgroup.
__device__ __forceinline__ void meet_warpgroup() {
  asm volatile("bar.sync %0, 128;" ::"r"(1 + to_int(threadIdx.x) / 128) : "memory");
}

// Stores four 8x8 matrices of sums, transposed: each lane passes the address of one 16-byte row, lanes
// 8i..8i+7 those of matrix i.
__device__ __forceinline__ void store_transposed(void* row, const std::uint32_t (&matrices)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
      "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
      : "memory");
}

// Writes a strip of 64 columns x kCount tokens, which a warpgroup has stored in shared memory: one row of 128
// bytes per token, with 16-byte chunks swizzled by the token's number.
template <int kCount>
__device__ __forceinline__ void store_strip(const PrefillCall& call, const Tile& tile, int first, int column,
                                            const std::byte* strip) {
  const LinearCall& linear = call.linear;
  const int chunk = to_int(threadIdx.x) % 8;
  const int left = to_int(linear.outputs) - (column + chunk * 8);
  // Computed before the first store, because the compiler must assume that a store changes `call`.
  long long rows[kCount / 16];
#pragma unroll
  for (int i = 0; i < kCount / 16; ++i) {
    const int r = first + to_int(threadIdx.x) % 128 / 8 + 16 * i;
    rows[i] = r < tile.tokens ? row_offset(call, tile, r, linear.out_token, linear.out_slot) : -1;
  }
#pragma unroll
  for (int i = 0; i < kCount / 16; ++i) {
    const int token = to_int(threadIdx.x) % 128 / 8 + 16 * i;
    const uint4 values =
        *reinterpret_cast<const uint4*>(strip + token * kStripRowBytes + (chunk ^ token % 8) * 16);
    if (rows[i] < 0 || left <= 0) continue;
    Bf16* to = static_cast<Bf16*>(linear.out) + rows[i] + column + chunk * 8;
    if (call.vector_out && left >= 8) {
      *reinterpret_cast<uint4*>(to) = values;
      continue;
    }
    const std::uint32_t pairs[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int c = 0; c < 8; ++c)
      if (c < left)
        reinterpret_cast<std::uint16_t*>(to)[c] = static_cast<std::uint16_t>(pairs[c / 2] >> (c % 2 * 16));
  }
}

// Writes the sums of a tile of kTokens tokens, rounded, in strips of 64 columns.
template <class S, int kTokens>
__device__ __forceinline__ void store_tile(const PrefillCall& call, const Tile& tile,
                                           const float (&sums)[S::kBlocks][kTokens / 2], std::byte* staging) {
  constexpr int kCount = kTokens < kStripTokens ? kTokens : kStripTokens;
  const int lane = to_int(threadIdx.x) % 32;
  const int warp = to_int(threadIdx.x) / 32 % 4;
  const int warpgroup = to_int(threadIdx.x) / 128;
  std::byte* strip = staging + warpgroup * S::kStagingBytes;
  // The matrix's chunk of 8 columns whose row this lane addresses.
  const int chunk = S::kOperands == 1 ? warp * 2 + lane / 8 % 2 : lane / 8 % 2 * 4 + warp;
#pragma unroll
  for (int first = 0; first < kTokens; first += kCount) {
#pragma unroll
    for (int b = 0; b < S::kBlocks / S::kOperands; ++b) {
      meet_warpgroup();  // the previous strip has been read
#pragma unroll
      for (int t = 0; t < kCount; t += 16) {
        std::uint32_t matrices[4];
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          const int at = (first + t) / 2 + m / 2 * 4;  // group of eight tokens
          if constexpr (S::kOperands == 1) {
            const float* s = sums[b] + at + m % 2 * 2;
            matrices[m] = pack_pair(s[0], s[1]);
          } else {
            const float* s = sums[m % 2] + at;
            matrices[m] = pack_pair(silu(s[0]) * s[2], silu(s[1]) * s[3]);
          }
        }
        const int token = t + lane / 16 * 8 + lane % 8;
        store_transposed(strip + token * kStripRowBytes + (chunk ^ token % 8) * 16, matrices);
      }
      meet_warpgroup();
      const int column = S::kOperands == 1 ? (warpgroup * S::kBlocks + b) * 64 : warpgroup * 64;
      store_strip<kCount>(call, tile, first, tile.column + column, strip);
    }
  }
}

// Writes the sums of a tile as F32: eight lanes write 32 neighbouring bytes.
template <class S, int kCount>
__device__ __forceinline__ void store_floats(const PrefillCall& call, const Tile& tile,
                                             const float (&sums)[S::kBlocks][kCount]) {
  const LinearCall& linear = call.linear;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int warp = to_int(threadIdx.x) / kWarp;
  auto* out = static_cast<float*>(linear.out);
#pragma unroll
  for (int i = 0; i < kCount; i += 4)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int token = 2 * i + lane % 4 * 2 + e;
      if (token >= tile.tokens) continue;
      const long long row = row_offset(call, tile, token, linear.out_token, linear.out_slot);
#pragma unroll
      for (int b = 0; b < S::kBlocks; ++b) {
        const int slab = (warp / 4 * S::kBlocks + b) * 4 + warp % 4;
        const int column = tile.column + column_of<S>(slab, lane / 4);
        const float upper = sums[b][i + e];
        const float lower = sums[b][i + e + 2];
        if constexpr (S::kOperands == 2) {
          if (column < linear.outputs) out[row + column] = upper / (1.0f + expf(-upper)) * lower;
        } else {
          if (column < linear.outputs) out[row + column] = upper;
          if (column + 8 < linear.outputs) out[row + column + 8] = lower;
        }
      }
    }
}

#endif

}  // namespace sluice::backend::cuda::linear::prefill::int4
