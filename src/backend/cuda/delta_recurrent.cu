// The recurrent form of the delta rule. Rows of a state [Dv,Dk] never meet: row i sees
//   u = beta (v_i - e^g S_i.k);  out_i = e^g S_i.q + u k.q;  S_i = e^g S_i + u k
// so a warp keeps kRows of them in registers over all tokens of a sequence, Dk across its lanes.
//
// Grid: (sequence, head, 32 rows); a block is four warps. Both products of a token are summed over the lanes
// in one butterfly that carries all rows, which leaves each row's sums with four lanes. Bytes: the state once
// each way, q, k, v and out once (q and k again from the cache for the other rows). F32 throughout.
#include "backend/cuda/delta_call.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

namespace {

constexpr int kRows = 8;  // of a warp; four lanes a row at the end of the butterfly
constexpr int kWarps = 4;
constexpr int kBlockRows = kRows * kWarps;
static_assert(kBlockRows == 32, "Dv is a multiple of 32");

// Sums x[i] over the lanes for every i; lane l returns the sum of x[l / 2].
__device__ __forceinline__ float sum_lanes(float (&x)[2 * kRows], int lane) {
#pragma unroll
  for (int half = kRows; half > 0; half /= 2) {
    const bool upper = (lane & (2 * half)) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float low = x[i];
      const float high = x[i + half];
      x[i] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, 2 * half);
    }
  }
  return x[0] + __shfl_xor_sync(0xffffffffu, x[0], 1);
}

// What one token does to the rows of a warp. A lane holds kPer elements of k and q, in groups of kVector
// neighbours, and the value of row lane / 4.
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
  const int slices = call.value_width / kBlockRows;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row =
      static_cast<int>(blockIdx.x) % slices * kBlockRows + static_cast<int>(threadIdx.x) / kWarp * kRows;
  const int head = static_cast<int>(blockIdx.x) / slices % call.value_heads;
  const SequencePart part = sequence_part(
      call.sequences, static_cast<int>(blockIdx.x) / slices / call.value_heads, call.slots, call.fault);
  if (part.tokens() == 0) return;

  float* const rows = call.state_row(part, head, row) + lane * kVector;
  float s[kRows][kPer];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kPer; i += kVector)
      load_vector(rows + r * call.state_strides[1] + i * kWarp, reinterpret_cast<float(&)[kVector]>(s[r][i]));

  Token<kPer, kVector> next;
  next.load(call, part.begin, head, row, lane);
  for (int t = part.begin; t < part.end; ++t) {
    const Token<kPer, kVector> token = next;
    if (t + 1 < part.end) next.load(call, t + 1, head, row, lane);
    const float decay = expf(token.g);
    float key_query = 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i) key_query += token.k[i] * token.q[i];
    key_query = warp_sum(key_query);
    float sums[2 * kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      sums[2 * r] = 0;
      sums[2 * r + 1] = 0;
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        sums[2 * r] += s[r][i] * token.k[i];
        sums[2 * r + 1] += s[r][i] * token.q[i];
      }
    }
    // Lanes 4r and 4r+1 have row r's S.k, 4r+2 and 4r+3 its S.q.
    const float mine = sum_lanes(sums, lane);
    const float other = __shfl_xor_sync(0xffffffffu, mine, 2);
    const bool has_key = (lane & 2) == 0;
    const float update = token.beta * (token.value - decay * (has_key ? mine : other));
    const float out = decay * (has_key ? other : mine) + update * key_query;
    if (lane % 4 == 0)
      call.store_out(t * call.out_strides[0] + head * call.out_strides[1] + row + lane / 4, out);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float u = __shfl_sync(0xffffffffu, update, 4 * r);
#pragma unroll
      for (int i = 0; i < kPer; ++i) s[r][i] = u * token.k[i] + decay * s[r][i];
    }
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kPer; i += kVector)
      store_vector(rows + r * call.state_strides[1] + i * kWarp,
                   reinterpret_cast<const float(&)[kVector]>(s[r][i]));
}

template <int kPer, int kVector>
void launch_width(Context& context, const DeltaCall& call) {
  const auto blocks =
      static_cast<unsigned>(call.sequences.count * call.value_heads * (call.value_width / kBlockRows));
  launch(context, delta_recurrent<kPer, kVector>, {dim3(blocks), dim3(kWarps * kWarp)}, call);
}

// Widest access that Dk = 32 kPer divides into.
constexpr int natural_vector(int per_lane) {
  return per_lane % 4 == 0 ? 4 : per_lane % 2 == 0 ? 2 : 1;
}

template <int kPer = 8>
void dispatch(Context& context, const ops::DeltaRule& op, const DeltaCall& call) {
  if constexpr (kPer > 1)
    if (call.key_width < kPer * kWarp) return dispatch<kPer - 1>(context, op, call);
  constexpr int kVector = natural_vector(kPer);
  if (kVector > 1 && aligned(op.state, kVector) && aligned(op.q, kVector) && aligned(op.k, kVector))
    launch_width<kPer, kVector>(context, call);
  else
    launch_width<kPer, 1>(context, call);
}

}  // namespace

void launch_recurrent(Context& context, const ops::DeltaRule& op) {
  dispatch(context, op, DeltaCall(context, op));
}

}  // namespace sluice::backend::cuda
