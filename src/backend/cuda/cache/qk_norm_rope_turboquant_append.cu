// q, k = rope(rms_norm(q), rms_norm(k)) in place, then k and v of token i into slot (start+i) mod S.
//
// One launch for the few tokens of a decode step: blocks of keys rotate their tokens' heads, one warp each,
// and then encode them as turboquant_append does, four vectors per warp or one; blocks of values only encode,
// and blocks of queries only rotate. The bits are those of the two ops, which run one after the other for
// many tokens: there a launch costs nothing, and their grids fit better. Bytes: q and k twice, v once,
// D*bits/8 + 4 per vector of k and v.
#include "backend/cuda/cache/encode_rows.cuh"
#include "backend/cuda/pointwise/norm_rope.cuh"
#include "base/integer_cast.h"
#include "ops/append_parts.h"

namespace sluice::backend::cuda::cache {

namespace {

constexpr int kMostTokens = 256;
constexpr int kBlockTokens = kEncodeWarps;  // keys or values: one per warp, as norm and rotation take longest

// Blocks of keys come first, then those of values, then queries.
struct AppendGrid {
  int side;     // blocks of keys, and as many of values
  int queries;  // blocks of queries
  bool grouped[2];

  AppendGrid(const GroupSides& sides, const pointwise::NormRope& rope)
      : side(divide_up(rope.tokens, kBlockTokens) * rope.keys.heads),
        queries(divide_up(rope.tokens * rope.queries.heads, kEncodeWarps)),
        grouped{sides.at[0].grouped(), sides.at[1].grouped()} {}
  unsigned count() const { return to_unsigned(2 * side + queries); }
};

template <int kCount>
using BlockMemory = GroupShared<kCount * kWarp, kEncodeWarps>;

// A block's work: tokens [first, first + 8) of one head of keys or of values.
struct BlockShare {
  const RingSide& side;
  bool keys;
  int head;
  int first;
};

// Four tokens per warp.
template <class T, int kCount, int kBits>
__device__ __forceinline__ void append_groups_of(const BlockShare& share, const pointwise::NormRope& rope,
                                                 const RingCall& call, BlockMemory<kCount>& shared,
                                                 float2* room) {
  const auto& [side, keys, head, first] = share;
  shared.template fill<kBits>(side.encoder, call.signs);
  const Fragment hadamard = hadamard_operand();
  const int warp = to_int(threadIdx.x) / kWarp;
  wait_for_inputs();
  allow_successor();
  if (keys) {
    if (first + warp < rope.tokens) pointwise::turn_head<T>(rope, rope.keys, first + warp, head, room);
    __syncthreads();
  }
  const TokenGroup group{head, first + 4 * warp};
  if (4 * warp >= kBlockTokens || group.first >= rope.tokens) return;
  GroupWords<kCount * kWarp> words;
  words.load(side, group, rope.tokens);
  words.apply(shared.signs);
  append_group<kCount * kWarp, kBits>(call, side, shared, hadamard, group, words);
}

// One token per warp.
template <class T, int kCount>
__device__ __forceinline__ void append_vectors_of(const BlockShare& share, const pointwise::NormRope& rope,
                                                  const RingCall& call, BlockMemory<kCount>& shared,
                                                  float2* room) {
  const auto& [side, keys, head, first] = share;
  const int warp = to_int(threadIdx.x) / kWarp;
  const int token = first + warp;
  share_bounds(side.encoder, shared.bounds);
  __syncthreads();
  wait_for_inputs();
  allow_successor();
  if (token >= rope.tokens) return;
  if (keys) pointwise::turn_head<T>(rope, rope.keys, token, head, room);
  const RingCall::Place at = call.place(token);
  if (!at.written) return;
  if (side.encoder.bits == 16)
    encode_vector<T, kCount, true>(side, at, head, token, call.signs, {shared.bounds, nullptr});
  else
    encode_vector<T, kCount, false>(side, at, head, token, call.signs, {shared.bounds, shared.scratch[warp]});
}

template <class T, int kCount>
__global__ void __launch_bounds__(kEncodeWarps* kWarp)
    turn_and_append(const __grid_constant__ pointwise::NormRope rope, const __grid_constant__ RingCall call,
                    const __grid_constant__ GroupSides sides, const __grid_constant__ AppendGrid grid) {
  constexpr int kWidth = kCount * kWarp;
  extern __shared__ float2 rooms[];
  __shared__ BlockMemory<kCount> shared;
  const int warp = to_int(threadIdx.x) / kWarp;
  float2* room = rooms + warp * rope.warp_room();
  int block = blockIdx.x;
  if (block >= 2 * grid.side) {
    wait_for_inputs();
    allow_successor();
    const int index = (block - 2 * grid.side) * kEncodeWarps + warp;
    if (index >= rope.tokens * rope.queries.heads) return;
    return pointwise::turn_head<T>(rope, rope.queries, index / rope.queries.heads, index % rope.queries.heads,
                                   room);
  }
  const bool keys = block < grid.side;
  if (!keys) block -= grid.side;
  const BlockShare share{sides.at[keys ? 0 : 1], keys, block % call.heads, block / call.heads * kBlockTokens};
  if constexpr (std::is_same_v<T, Bf16> && kWidth >= 128)
    if (grid.grouped[keys ? 0 : 1]) {
      if (share.side.encoder.bits == 4)
        return append_groups_of<T, kCount, 4>(share, rope, call, shared, room);
      return append_groups_of<T, kCount, 8>(share, rope, call, shared, room);
    }
  append_vectors_of<T, kCount>(share, rope, call, shared, room);
}

template <class F>
void with_head_width(int width, F&& f) {
  if (width == 64) return f.template operator()<2>();
  if (width == 128) return f.template operator()<4>();
  if (width == 256) return f.template operator()<8>();
  f.template operator()<16>();
}

bool supports(const ops::QkNormRopeTurboquantAppend& op) {
  return op.q.dim(0) <= kMostTokens && op.q.dim(2) >= 64 && op.q.dim(2) <= 512 && op.k.dtype == op.q.dtype &&
         op.v.dtype == op.q.dtype;
}

}  // namespace

}  // namespace sluice::backend::cuda::cache

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::QkNormRopeTurboquantAppend& op) {
  using namespace cache;
  if (!supports(op)) {
    run(context, ops::turn_part(op));
    return run(context, ops::append_part(op));
  }
  const pointwise::NormRope rope(ops::turn_part(op));
  const ops::TurboquantAppend append = ops::append_part(op);
  const RingCall call = ring_call(context, append);
  const GroupSides sides = ring_sides(append);
  const AppendGrid blocks(sides, rope);
  const Grid grid{dim3(blocks.count()), dim3(kEncodeWarps * kWarp),
                  kEncodeWarps * sizeof(float2) * to_size(rope.warp_room())};
  with_head_width(rope.width, [&]<int kCount>() {
    with_activation(op.q.dtype, [&]<class T>() {
      launch(context, turn_and_append<T, kCount>, grid, rope, call, sides, blocks);
    });
  });
}

}  // namespace sluice::backend::cuda
