// q_latent[t,h] = q_nope[t,h] K_h. With embed_q this is a product with one [rank,nope] matrix per head. With
// kv_b it is a sum of the head's K rows, each weighted by one element of the query:
//
//   q_latent[t,h,r] = sum_n q_nope[t,h,n] kv_b[h*(nope+v) + n, r]
//
// One block per head, 256 columns of the rank and a tile of tokens; a lane computes eight columns, the rows
// are divided among the warps, and their sums are added in shared memory in a fixed order. Bytes: the K rows
// once per tile of tokens. F32 throughout, with one rounding of the output.
#include "sluice/ops/linear/mla_absorb_q.h"

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/weight_value.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear {

namespace {

constexpr int kWarps = 8;
constexpr int kColumns = 8 * kWarp;
constexpr int kTokens = 8;

struct AbsorbCall {
  Matrices keys;
  const void* q;
  void* out;
  long long q_token, q_head;
  long long out_token, out_head;
  long long tokens, nope, rank;
};

// Tokens: the number per block. The order of a token's sum is the same for any number.
template <class T, int Tokens>
__global__ void __launch_bounds__(kWarps* kWarp) absorb_rows(AbsorbCall call) {
  __shared__ float sums[kWarps][kColumns];
  const int lane = threadIdx.x;
  const int warp = threadIdx.y;
  const long long head = blockIdx.y;
  const long long first_token = static_cast<long long>(blockIdx.z) * Tokens;
  const long long eighth = static_cast<long long>(blockIdx.x) * kWarp + lane;
  const MatrixPointers keys = call.keys[head];
  wait_for_inputs();
  allow_successor();
  const T* q = static_cast<const T*>(call.q) + first_token * call.q_token + head * call.q_head;
  float acc[Tokens][8] = {};
  if (8 * eighth < call.rank)
    for (long long n = warp; n < call.nope; n += kWarps) {
      float values[8];
      eight_values(call.keys, keys, n, eighth, call.rank, values);
#pragma unroll
      for (int t = 0; t < Tokens; ++t) {
        if (first_token + t >= call.tokens) break;
        const float weight = to_float(q[t * call.q_token + n]);
#pragma unroll
        for (int i = 0; i < 8; ++i) acc[t][i] = fmaf(weight, values[i], acc[t][i]);
      }
    }
#pragma unroll
  for (int t = 0; t < Tokens; ++t) {
    if (first_token + t >= call.tokens) break;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[warp][8 * lane + i] = acc[t][i];
    __syncthreads();
    const int column = warp * kWarp + lane;
    const long long r = static_cast<long long>(blockIdx.x) * kColumns + column;
    if (r >= call.rank) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += sums[w][column];
    T* out = static_cast<T*>(call.out) + (first_token + t) * call.out_token + head * call.out_head;
    out[r] = from_float<T>(sum);
  }
}

void absorb(Context& context, const ops::MlaAbsorbQ& op) {
  const long long nope = op.q_nope.dim(2);
  const AbsorbCall call{head_rows(op.kv_b, nope + op.v, 0),
                        op.q_nope.data,
                        op.q_latent.data,
                        op.q_nope.strides[0],
                        op.q_nope.strides[1],
                        op.q_latent.strides[0],
                        op.q_latent.strides[1],
                        op.q_nope.dim(0),
                        nope,
                        op.q_latent.dim(2)};
  const int tile = call.tokens == 1 ? 1 : kTokens;
  const Grid grid{dim3(to_unsigned(divide_up<long long>(call.rank, kColumns)), to_unsigned(op.q_nope.dim(1)),
                       to_unsigned(divide_up<long long>(call.tokens, tile))),
                  dim3(kWarp, kWarps)};
  with_activation(op.q_nope.dtype, [&]<class T>() {
    launch(context, tile == 1 ? absorb_rows<T, 1> : absorb_rows<T, kTokens>, grid, call);
  });
}

}  // namespace

}  // namespace sluice::backend::cuda::linear

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaAbsorbQ& op) {
  using namespace linear;
  if (op.kv_b.present()) return absorb(context, op);
  LinearCall call = linear_call(op.q_nope, op.q_latent);
  call.w[0] = matrices_of(op.embed_q);
  run_linear(context, call);
}

}  // namespace sluice::backend::cuda
