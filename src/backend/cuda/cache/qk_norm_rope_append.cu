// q, k = rope(rms_norm(q), rms_norm(k)) in place, then k_cache[start+i] = k[i], v_cache[start+i] = v[i].
//
// A warp per head of a token: of q, of k, or of v, which is only copied. Bytes: q and k twice, v and the rows
// of the cache once. The bits are those of the two ops, which run instead if the caches have another type
// than the activations.
#include <algorithm>

#include "backend/cuda/cache/append_rows.cuh"
#include "backend/cuda/pointwise/norm_rope.cuh"
#include "base/integer_cast.h"
#include "ops/append_parts.h"

namespace sluice::backend::cuda::cache {

namespace {

constexpr int kWarps = 4;

// The caches as rows in chunks.
struct ChunkedCaches {
  AppendCall append;
  bool keys_aligned;
  bool values_aligned;

  template <class T>
  __device__ __forceinline__ T* row(const AppendCall::Place& at, int side, int head) const {
    const AppendSide& to = append.sides[side];
    return static_cast<T*>(to.cache) + at.slot * to.pool_stride + at.row * to.row_stride +
           head * to.head_stride;
  }
};

template <class T>
__device__ __forceinline__ void copy_value(const ChunkedCaches& caches, const AppendCall::Place& at,
                                           int token, int head) {
  constexpr int V = kChunk<T>;
  const AppendSide& side = caches.append.sides[1];
  const T* from =
      static_cast<const T*>(side.tokens) + token * side.token_stride + head * side.token_head_stride;
  T* to = caches.row<T>(at, 1, head);
  for (int i = to_int(threadIdx.x) % kWarp * V; i < side.width; i += kWarp * V)
    store_chunk(load_chunk<V>(from + i, side.width - i, caches.values_aligned), to + i, side.width - i,
                caches.values_aligned);
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    qk_norm_rope_append(const __grid_constant__ pointwise::NormRope rope,
                        const __grid_constant__ ChunkedCaches caches) {
  extern __shared__ float2 shared[];
  const int warp = to_int(threadIdx.x) / kWarp;
  float2* room = shared + warp * rope.warp_room();
  wait_for_inputs();
  allow_successor();
  const int heads = rope.queries.heads + 2 * rope.keys.heads;
  const int index = to_int(blockIdx.x) * kWarps + warp;
  const int token = index / heads;
  int head = index % heads;
  if (token >= rope.tokens) return;
  if (head < rope.queries.heads) return pointwise::turn_head<T>(rope, rope.queries, token, head, room);
  head -= rope.queries.heads;
  const AppendCall::Place at = caches.append.place(token);
  if (head >= rope.keys.heads) {
    if (at.written) copy_value<T>(caches, at, token, head - rope.keys.heads);
    return;
  }
  T* x = rope.keys.row<T>(token, head);
  T* to = at.written ? caches.row<T>(at, 0, head) : nullptr;
  pointwise::turn_head<T>(rope, rope.keys, token, head, room, [&](int i, const Chunk<T, kChunk<T>>& chunk) {
    store_chunk(chunk, x + i, rope.width - i, rope.keys.aligned);
    if (to != nullptr) store_chunk(chunk, to + i, rope.width - i, caches.keys_aligned);
  });
}

}  // namespace

}  // namespace sluice::backend::cuda::cache

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::QkNormRopeAppend& op) {
  using namespace cache;
  const pointwise::NormRope rope(ops::turn_part(op));
  const std::size_t shared_bytes = kWarps * sizeof(float2) * to_size(rope.warp_room());
  const auto same_types = [&](std::initializer_list<ops::DType> types) {
    return std::all_of(types.begin(), types.end(), [&](ops::DType type) { return type == op.q.dtype; });
  };
  if (!same_types({op.k.dtype, op.v.dtype, op.k_cache.dtype, op.v_cache.dtype}) || shared_bytes > 48 * 1024) {
    run(context, ops::turn_part(op));
    return run(context, ops::append_part(op));
  }
  const long long rows = op.q.dim(0) * (op.q.dim(1) + 2 * op.k.dim(1));
  const Grid grid{dim3(to_unsigned(divide_up<long long>(rows, kWarps))), dim3(kWarps * kWarp), shared_bytes};
  with_activation(op.q.dtype, [&]<class T>() {
    const ChunkedCaches caches{append_call(context, op, op.k, op.k_cache, op.v, op.v_cache),
                               chunks_aligned(op.k_cache, kChunk<T>),
                               chunks_aligned(op.v_cache, kChunk<T>) && chunks_aligned(op.v, kChunk<T>)};
    launch(context, qk_norm_rope_append<T>, grid, rope, caches);
  });
}

}  // namespace sluice::backend::cuda
