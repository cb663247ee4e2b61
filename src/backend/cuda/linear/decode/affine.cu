#include "backend/cuda/linear/decode/kernel.cuh"

namespace sluice::backend::cuda::linear::decode {

namespace {

template <Storage S>
void launch_scales(Context& context, const LinearCall& call, const DecodePlan& plan) {
  if (call.w[0].scale_type == ScaleType::bf16) return launch_storage<S, true>(context, call, plan);
  launch_storage<S, false>(context, call, plan);
}

}  // namespace

void launch_affine(Context& context, const LinearCall& call, const DecodePlan& plan) {
  switch (call.w[0].storage) {
    case Storage::affine2:
      return launch_scales<Storage::affine2>(context, call, plan);
    case Storage::affine3:
      return launch_scales<Storage::affine3>(context, call, plan);
    case Storage::affine5:
      return launch_scales<Storage::affine5>(context, call, plan);
    case Storage::affine6:
      return launch_scales<Storage::affine6>(context, call, plan);
    case Storage::affine8:
      return launch_scales<Storage::affine8>(context, call, plan);
    default:
      return launch_scales<Storage::affine4>(context, call, plan);
  }
}

}  // namespace sluice::backend::cuda::linear::decode
