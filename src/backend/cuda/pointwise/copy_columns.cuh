// Copies ranges of columns of tensors into other tensors, several in one launch.
//
// Each piece has its own range of blocks; a thread copies one chunk. If the types are equal, the bits are
// copied unchanged. Bytes: every column is read and written once.
#pragma once

#include "backend/cuda/device/chunk.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::pointwise {

struct Piece {
  ChunkedRows<const void*> from;
  ChunkedRows<void*> to;
  ops::DType from_type;
  long long width;
  long long row_chunks;
  unsigned first_block;
};

template <int kPieces>
struct Pieces {
  Piece piece[kPieces];
};

// Columns [begin, begin + width of `to`) of `from`.
inline Piece piece(const ops::ConstView& from, long long begin, const ops::View& to, int v) {
  const long long width = to.shape.back();
  const ops::ConstView columns(
      static_cast<const std::byte*>(from.data) + begin * static_cast<long long>(ops::size_bytes(from.dtype)),
      from.dtype, to.shape, from.strides);
  return {{columns, v}, {to, v}, from.dtype, width, divide_up<long long>(width, v), 0};
}

template <class From, class To, int V>
__device__ __forceinline__ void copy_chunk(const Piece& piece, long long row, long long at) {
  const long long left = piece.width - at;
  const Chunk<From, V> chunk = load_chunk<V>(piece.from.row<From>(row) + at, left, piece.from.aligned);
  To* to = piece.to.row<To>(row) + at;
  if constexpr (std::is_same_v<From, To>) {
    store_chunk(chunk, to, left, piece.to.aligned);
  } else {
    float values[V];
    widen(chunk, values);
    store_chunk(narrow<To>(values), to, left, piece.to.aligned);
  }
}

template <class To, int kPieces>
__global__ void __launch_bounds__(256) copy_columns(Pieces<kPieces> pieces) {
  wait_for_inputs();
  allow_successor();
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    const Piece& piece = pieces.piece[p];
    if (blockIdx.x < piece.first_block) continue;
    if (p + 1 < kPieces && blockIdx.x >= pieces.piece[(p + 1) % kPieces].first_block) continue;
    const long long chunk = static_cast<long long>(blockIdx.x - piece.first_block) * blockDim.x + threadIdx.x;
    const long long row = chunk / piece.row_chunks;
    if (row >= piece.to.offsets.count) return;
    const long long at = (chunk - row * piece.row_chunks) * kChunk<To>;
    if (piece.from_type == ops::DType::f32)
      copy_chunk<float, To, kChunk<To>>(piece, row, at);
    else
      copy_chunk<Bf16, To, kChunk<To>>(piece, row, at);
  }
}

template <class To, int kPieces>
void launch_copies(Context& context, Pieces<kPieces> pieces) {
  unsigned blocks = 0;
  for (Piece& piece : pieces.piece) {
    piece.first_block = blocks;
    blocks += to_unsigned(divide_up<long long>(piece.row_chunks * piece.to.offsets.count, 256));
  }
  launch(context, copy_columns<To, kPieces>, {dim3(blocks), dim3(256)}, pieces);
}

}  // namespace sluice::backend::cuda::pointwise
