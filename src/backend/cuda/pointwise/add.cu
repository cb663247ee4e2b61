// out = a + b, element-wise (elementwise.cuh). F32 arithmetic, one rounding.
#include "sluice/ops/add.h"

#include "backend/cuda/pointwise/elementwise.cuh"

namespace sluice::backend::cuda {

namespace {

struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

}  // namespace

template <>
void run(Context& context, const ops::Add& op) {
  run_elementwise<Sum>(context, op.a, op.b, op.out);
}

}  // namespace sluice::backend::cuda
