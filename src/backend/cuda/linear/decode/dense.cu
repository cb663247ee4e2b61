#include "backend/cuda/linear/decode/kernel.cuh"

namespace sluice::backend::cuda::linear::decode {

void launch_dense(Context& context, const LinearCall& call, const DecodePlan& plan) {
  if (call.w[0].storage == Storage::bf16) return launch_storage<Storage::bf16, false>(context, call, plan);
  if (call.w[0].storage == Storage::f16) return launch_storage<Storage::f16, false>(context, call, plan);
  launch_storage<Storage::f32, false>(context, call, plan);
}

}  // namespace sluice::backend::cuda::linear::decode
