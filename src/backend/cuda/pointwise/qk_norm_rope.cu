// x = rope(x * rsqrt(mean(x^2) + eps) * weight), for each head of q and of k, in place, rounded once.
//
// One warp per head, those of q first. Bytes: q and k twice.
#include "sluice/ops/pointwise/qk_norm_rope.h"

#include "backend/cuda/pointwise/norm_rope.cuh"
#include "base/integer_cast.h"
#include "sluice/ops/pointwise/rms_norm.h"
#include "sluice/ops/pointwise/rope.h"

namespace sluice::backend::cuda::pointwise {

namespace {

constexpr int kWarps = 4;

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp) qk_norm_rope(const __grid_constant__ NormRope call) {
  extern __shared__ float2 shared[];
  const int warp = to_int(threadIdx.x) / kWarp;
  wait_for_inputs();
  allow_successor();
  long long index = static_cast<long long>(blockIdx.x) * kWarps + warp;
  const long long queries = static_cast<long long>(call.tokens) * call.queries.heads;
  if (index >= queries + static_cast<long long>(call.tokens) * call.keys.heads) return;
  const TurnedHeads& side = index < queries ? call.queries : call.keys;
  if (index >= queries) index -= queries;
  turn_head<T>(call, side, to_int(index / side.heads), to_int(index % side.heads),
               shared + warp * call.warp_room());
}

void run_parts(Context& context, const ops::QkNormRope& op) {
  run(context, ops::RmsNorm{.x = op.q, .weight = op.q_weight, .out = op.q, .eps = op.eps});
  run(context, ops::RmsNorm{.x = op.k, .weight = op.k_weight, .out = op.k, .eps = op.eps});
  for (const ops::View& x : {op.q, op.k})
    run(context, ops::Rope{.x = x, .inv_freq = op.inv_freq, .positions = op.positions, .mscale = op.mscale});
}

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::QkNormRope& op) {
  using namespace pointwise;
  const NormRope call(op);
  const std::size_t shared_bytes = kWarps * sizeof(float2) * to_size(call.warp_room());
  if (op.q.dtype != op.k.dtype || shared_bytes > 48 * 1024) return run_parts(context, op);
  const long long rows = op.q.dim(0) * (op.q.dim(1) + op.k.dim(1));
  const Grid grid{dim3(to_unsigned(divide_up<long long>(rows, kWarps))), dim3(kWarps * kWarp), shared_bytes};
  with_activation(op.q.dtype, [&]<class T>() { launch(context, qk_norm_rope<T>, grid, call); });
}

}  // namespace sluice::backend::cuda
