// out = silu(gate) * up, element-wise (elementwise.cuh). F32 arithmetic, one rounding.
#include "sluice/ops/pointwise/swiglu.h"

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/pointwise/elementwise.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

struct GatedUp {
  __device__ __forceinline__ float operator()(float gate, float up) const { return silu(gate) * up; }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Swiglu& op) {
  using namespace pointwise;
  run_elementwise<GatedUp>(context, op.gate, op.up, op.out);
}

}  // namespace sluice::backend::cuda
