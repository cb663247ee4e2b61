// The recurrent form of the delta rule (state_rows.cuh).
//
// Grid: (sequence, head, 32 rows); a block has four warps, each with its rows of the state in registers over
// all tokens of a sequence. Bytes: the state read and written once, q, k, v and out once (q and k again from
// the cache for the other rows). F32 throughout.
#include "backend/cuda/delta/call.cuh"
#include "backend/cuda/delta/state_rows.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

namespace {

constexpr int kRows = 8;  // per warp
constexpr int kWarps = 4;
constexpr int kBlockRows = kRows * kWarps;
static_assert(kBlockRows == 32, "Dv is a multiple of 32");

// A warp's inputs for one token. A lane holds kPer elements of k and q, in groups of kVector neighbours, and
// the value of row lane / 4.
template <int kPer, int kVector>
struct Token {
  float k[kPer];
  float q[kPer];
  float value;
  float g;
  float beta;

  __device__ __forceinline__ void load(const DeltaCall& call, long long t, int head, int row, int lane) {
    const int key_head = call.key_head(head);
    const long long k_at = t * call.k_strides[0] + key_head * call.k_strides[1] + lane * kVector;
    const long long q_at = t * call.q_strides[0] + key_head * call.q_strides[1] + lane * kVector;
#pragma unroll
    for (int i = 0; i < kPer; i += kVector) {
      call.k.load(k_at + i * kWarp, reinterpret_cast<float(&)[kVector]>(k[i]));
      call.q.load(q_at + i * kWarp, reinterpret_cast<float(&)[kVector]>(q[i]));
    }
    value = call.v[t * call.v_strides[0] + head * call.v_strides[1] + row + lane / 4];
    g = call.g[t * call.g_stride + head];
    beta = call.beta[t * call.beta_stride + head];
  }
};

template <int kPer, int kVector>
__global__ void __launch_bounds__(kWarps* kWarp) delta_recurrent(DeltaCall call) {
  wait_for_inputs();
  allow_successor();
  if (blockIdx.x == 0) call.saves.check(call.sequences, call.fault);
  const int slices = call.value_width / kBlockRows;
  const int lane = to_int(threadIdx.x) % kWarp;
  const int row = to_int(blockIdx.x) % slices * kBlockRows + to_int(threadIdx.x) / kWarp * kRows;
  const int head = to_int(blockIdx.x) / slices % call.value_heads;
  const SequencePart part =
      sequence_part(call.sequences, to_int(blockIdx.x) / slices / call.value_heads, call.slots, call.fault);
  if (part.tokens() == 0) return;

  float* const rows = call.state_row(part, head, row) + lane * kVector;
  StateRows<kRows, kPer, kVector> state;
  state.load(rows, call.state_strides[1]);
  Token<kPer, kVector> next;
  next.load(call, part.begin, head, row, lane);
  for (int t = part.begin; t < part.end; ++t) {
    const Token<kPer, kVector> token = next;
    if (t + 1 < part.end) next.load(call, t + 1, head, row, lane);
    const float out = state.step(token.k, token.q, token.value, expf(token.g), token.beta);
    if (lane % 4 == 0)
      call.store_out(t * call.out_strides[0] + head * call.out_strides[1] + row + lane / 4, out);
    if (call.saves.count == 0 || (t + 1 - part.begin) % 64 != 0) continue;
    const int save = call.saves.find(t + 1);
    if (save >= 0) state.store(call.saved_row(save, head, row) + lane * kVector, call.saved_strides[2]);
  }
  state.store(rows, call.state_strides[1]);
}

template <int kPer, int kVector>
void launch_width(Context& context, const DeltaCall& call) {
  const auto blocks = to_unsigned(call.sequences.count * call.value_heads * (call.value_width / kBlockRows));
  launch(context, delta_recurrent<kPer, kVector>, {dim3(blocks), dim3(kWarps * kWarp)}, call);
}

// The widest access that divides Dk = 32 kPer.
constexpr int natural_vector(int per_lane) {
  return per_lane % 4 == 0 ? 4 : per_lane % 2 == 0 ? 2 : 1;
}

template <int kPer = 8>
void dispatch(Context& context, const ops::DeltaRule& op, const DeltaCall& call) {
  if constexpr (kPer > 1)
    if (call.key_width < kPer * kWarp) return dispatch<kPer - 1>(context, op, call);
  constexpr int kVector = natural_vector(kPer);
  if (kVector > 1 && aligned(op.state, kVector) && aligned(op.q, kVector) && aligned(op.k, kVector) &&
      (!op.saved.present() || aligned(op.saved, kVector)))
    launch_width<kPer, kVector>(context, call);
  else
    launch_width<kPer, 1>(context, call);
}

}  // namespace

void launch_recurrent(Context& context, const ops::DeltaRule& op) {
  dispatch(context, op, DeltaCall(context, op));
}

}  // namespace sluice::backend::cuda::delta
