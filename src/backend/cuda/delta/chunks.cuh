// The chunked form of the delta rule. With G_i the sum of g over tokens 0..i of a chunk, D_ij = e^(G_i - G_j)
// and S the state [Dv,Dk] before the chunk:
//   R = V - e^G o (K ST);  X = (I + tril(diag(beta) (K KT o D), -1))^-1 diag(beta) R
//   out = e^G o (Q ST) + tril(Q KT o D) X
//   S' = e^G_last S + (e^(G_last - G) o X)T K
// A first kernel computes the two square matrices and the decays of all chunks in parallel; a second one
// iterates over the chunks of a sequence with the state in registers. The tables are passed in scratch
// memory.
//
// Chunk c of sequence b has the number begin_b / 64 + b + c: unlike a running count, it needs no sum over the
// preceding sequences. Some numbers are unused.
#pragma once

#include "backend/cuda/delta/call.cuh"
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/device/warp.cuh"

namespace sluice::backend::cuda::delta {

constexpr int kChunk = 64;
constexpr int kSide = kChunk / 16;                     // 16x16 blocks along a side of a square matrix
constexpr int kLowerBlocks = kSide * (kSide + 1) / 2;  // on and below the diagonal

__host__ __device__ constexpr int lower_block(int i, int j) {
  return i * (i + 1) / 2 + j;
}

// A lower triangular matrix as right operands by lane, in two terms, with its rows as the operand's columns:
// at[0..1] are of row l / 4, at[2..3] of row l / 4 + 8; at[0], at[2] of columns 2 (l % 4) and the next one,
// at[1], at[3] of the columns 8 further.
struct LowerMatrix {
  Fragment high[kLowerBlocks][kWarp];
  Fragment low[kLowerBlocks][kWarp];
};

// What the first kernel computes for one chunk and value head.
struct StateTable {
  LowerMatrix inverse;       // times diag(beta)
  float from_start[kChunk];  // e^G
  float to_end[kChunk];      // e^(G_last - G)
};
struct OutTable {
  LowerMatrix mix;  // tril(Q KT o D)
  float from_start[kChunk];
};
struct ChunkTable {
  StateTable state;
  OutTable out;
};
static_assert(sizeof(StateTable) % 16 == 0 && sizeof(OutTable) % 16 == 0);

// The chunks [first, last) of a call, and their tables, ordered by chunk, then value head.
struct ChunkRange {
  ChunkTable* tables;
  int first;
  int last;

  __device__ __forceinline__ ChunkTable& at(const DeltaCall& call, int chunk, int head) const {
    return tables[static_cast<long long>(chunk - first) * call.value_heads + head];
  }
};

__device__ __forceinline__ int first_chunk(const DeviceSequences& sequences, int b) {
  return sequences.begin(b) / kChunk + b;
}

// The tokens of chunk number `chunk`; none for an unused number or an invalid sequence.
__device__ __forceinline__ SequencePart sequence_of_chunk(const DeltaCall& call, int chunk) {
  int low = 0;
  int high = call.sequences.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (first_chunk(call.sequences, middle) <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  SequencePart part = sequence_part(call.sequences, low, call.slots, call.fault);
  const int index = chunk - first_chunk(call.sequences, low);
  if (index < 0 || index >= (part.tokens() + kChunk - 1) / kChunk) return {};
  part.begin += index * kChunk;
  part.end = min(part.end, part.begin + kChunk);
  return part;
}

// The tokens of a chunk for one head.
struct ChunkRows {
  const Bf16* data;
  long long stride;
  int count;
  int width;
};

// Copies rows into a swizzled tile of kChunk rows; rows and columns outside become zero.
template <int kWidth>
__device__ __forceinline__ void copy_rows(Bf16* tile, const ChunkRows& from, int thread, int threads) {
  constexpr int kPieces = kWidth / 8;
  for (int i = thread; i < kChunk * kPieces; i += threads) {
    const int row = i / kPieces;
    const int piece = i % kPieces;
    const bool inside = row < from.count && piece * 8 < from.width;
    copy_16(tile + swizzled<kPieces>(row, piece) * 8,
            inside ? from.data + row * from.stride + piece * 8 : from.data, inside);
  }
}

// Copies `bytes` bytes, a multiple of 16.
__device__ __forceinline__ void copy_bytes(void* to, const void* from, int bytes, int thread, int threads) {
  for (int i = thread * 16; i < bytes; i += threads * 16)
    copy_16(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, true);
}

// The row (of a block of 16 tokens) that the lane addresses when it loads a 16x16 block as a left operand or,
// transposed, as two right operands: rows 0-15 of the left half, then of the right half.
__device__ __forceinline__ int rows_first(int lane) {
  return lane % 16;
}
// The same for two right operands: both halves of rows 0-7, then of rows 8-15.
__device__ __forceinline__ int halves_first(int lane) {
  return lane / 16 * 8 + lane % 8;
}

void launch_prepare(Context& context, const DeltaCall& call, const ChunkRange& range);

// Calls f with Dk rounded up to a width for which kernels exist.
constexpr int kWidestKey = 128;
template <class F>
void with_key_width(int width, F&& f) {
  if (width <= 32) return f.template operator()<32>();
  if (width <= 64) return f.template operator()<64>();
  f.template operator()<kWidestKey>();
}

}  // namespace sluice::backend::cuda::delta
