// A block's iteration over the chunks of a sequence, and the tiles that it copies.
#pragma once

#include "backend/cuda/delta/chunks.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

// The tiles of one chunk that the state warps read (kRows rows of the state per block), and those that the
// output warps read.
template <int kWidth, int kRows>
struct alignas(128) StateTiles {
  Bf16 k[kChunk * kWidth];
  Bf16 v[kChunk * kRows];
  StateTable table;
};
template <int kWidth>
struct alignas(128) OutTiles {
  Bf16 q[kChunk * kWidth];
  OutTable table;
};

// A block's work: a value head, rows of its state, and a range of a sequence's chunks.
struct Walk {
  SequencePart part;
  int head;
  int row;
  int begin;  // chunks, counted in the sequence
  int end;
  int first;  // the number of chunk 0

  // For block number `block`, if each has kRows rows of a state; without chunks if there is nothing to do.
  template <int kRows>
  static __device__ __forceinline__ Walk of_block(const DeltaCall& call, const ChunkRange& range, int block) {
    const int slices = call.value_width / kRows;
    const int b = block / slices / call.value_heads;
    Walk walk{};
    walk.part = sequence_part(call.sequences, b, call.slots, call.fault);
    if (walk.part.tokens() == 0) return walk;
    walk.head = block / slices % call.value_heads;
    walk.row = block % slices * kRows;
    walk.first = first_chunk(call.sequences, b);
    walk.begin = max(0, range.first - walk.first);
    walk.end = min((walk.part.tokens() + kChunk - 1) / kChunk, range.last - walk.first);
    return walk;
  }
  __device__ __forceinline__ int token(int chunk) const { return part.begin + chunk * kChunk; }
  __device__ __forceinline__ int rows(int chunk) const { return min(kChunk, part.end - token(chunk)); }
  // Which save is of the state after a chunk, or -1.
  __device__ __forceinline__ int save_behind(const DeltaCall& call, int chunk) const {
    return rows(chunk) == kChunk ? call.saves.find(token(chunk + 1)) : -1;
  }
};

template <int kThreads, int kWidth, int kRows>
__device__ __forceinline__ void copy_state_tiles(const DeltaCall& call, const ChunkRange& range,
                                                 const Walk& walk, int chunk,
                                                 StateTiles<kWidth, kRows>& tiles, int thread) {
  const long long t = walk.token(chunk);
  copy_rows<kWidth>(tiles.k,
                    {static_cast<const Bf16*>(call.k.data) + t * call.k_strides[0] +
                         call.key_head(walk.head) * call.k_strides[1],
                     call.k_strides[0], walk.rows(chunk), call.key_width},
                    thread, kThreads);
  copy_rows<kRows>(tiles.v,
                   {static_cast<const Bf16*>(call.v.data) + t * call.v_strides[0] +
                        walk.head * call.v_strides[1] + walk.row,
                    call.v_strides[0], walk.rows(chunk), kRows},
                   thread, kThreads);
  copy_bytes(&tiles.table, &range.at(call, walk.first + chunk, walk.head).state, sizeof(StateTable), thread,
             kThreads);
}

template <int kThreads, int kWidth>
__device__ __forceinline__ void copy_out_tiles(const DeltaCall& call, const ChunkRange& range,
                                               const Walk& walk, int chunk, OutTiles<kWidth>& tiles,
                                               int thread) {
  const long long t = walk.token(chunk);
  copy_rows<kWidth>(tiles.q,
                    {static_cast<const Bf16*>(call.q.data) + t * call.q_strides[0] +
                         call.key_head(walk.head) * call.q_strides[1],
                     call.q_strides[0], walk.rows(chunk), call.key_width},
                    thread, kThreads);
  copy_bytes(&tiles.table, &range.at(call, walk.first + chunk, walk.head).out, sizeof(OutTable), thread,
             kThreads);
}

// The same with wgmma: compute capability 9.0, keys of more than 64 elements.
bool walk_wgmma_supports(const Context& context, const DeltaCall& call);
void launch_walk_wgmma(Context& context, const DeltaCall& call, const ChunkRange& range);

}  // namespace sluice::backend::cuda::delta
