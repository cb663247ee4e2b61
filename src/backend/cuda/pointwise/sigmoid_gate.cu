// out = x * sigmoid(gate), element-wise (elementwise.cuh). F32 arithmetic, one rounding.
#include "sluice/ops/pointwise/sigmoid_gate.h"

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/pointwise/elementwise.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

struct Gated {
  __device__ __forceinline__ float operator()(float x, float gate) const { return x * sigmoid(gate); }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::SigmoidGate& op) {
  using namespace pointwise;
  run_elementwise<Gated>(context, op.x, op.gate, op.out);
}

}  // namespace sluice::backend::cuda
