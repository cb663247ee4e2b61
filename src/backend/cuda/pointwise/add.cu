// out = a + b, element-wise (elementwise.cuh). F32 arithmetic, one rounding.
#include "sluice/ops/pointwise/add.h"

#include "backend/cuda/pointwise/elementwise.cuh"

namespace sluice::backend::cuda::pointwise {

namespace {

struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

}  // namespace

}  // namespace sluice::backend::cuda::pointwise

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Add& op) {
  using namespace pointwise;
  run_elementwise<Sum>(context, op.a, op.b, op.out);
}

}  // namespace sluice::backend::cuda
