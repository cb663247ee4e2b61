#include "backend/cuda/linear/decode/kernel.cuh"

namespace sluice::backend::cuda::linear::decode {

void launch_minifloat(Context& context, const LinearCall& call, const DecodePlan& plan) {
  if (call.w[0].storage == Storage::fp4) return launch_storage<Storage::fp4, false>(context, call, plan);
  launch_storage<Storage::fp8, false>(context, call, plan);
}

}  // namespace sluice::backend::cuda::linear::decode
