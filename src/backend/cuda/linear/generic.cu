// The products for storage that the tuned kernels do not support: rows at unaligned addresses, operands of
// different formats, rows too long for shared memory. One warp per output value, in a fixed order over K.
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/linear/linear.h"
#include "backend/cuda/linear/weight_value.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::linear {

namespace {

constexpr int kWarps = 8;

template <class T>
__device__ float row_product(const T* x, const Matrices& w, long long matrix, long long n, long long inputs) {
  const MatrixPointers at = w[matrix];
  float sum = 0;
  for (long long i = threadIdx.x; i < inputs; i += kWarp) sum += to_float(x[i]) * weight_value(w, at, n, i);
  return warp_sum(sum);
}

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp) linear_rows(LinearCall call, Fault* fault) {
  wait_for_inputs();
  allow_successor();
  const long long row = blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y;
  const long long n = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= call.tokens * call.slots || n >= call.outputs) return;
  const long long matrix = call.matrix_of(row, fault);
  if (matrix < 0) return;
  const T* x = static_cast<const T*>(call.x) + call.x_offset(row);
  float value = row_product(x, call.w[0], matrix, n, call.inputs);
  if (call.operands == 2) {
    const float up = row_product(x, call.w[1], matrix, n, call.inputs);
    value = value / (1.0f + expf(-value)) * up;
  }
  if (threadIdx.x == 0) call.store(call.out_offset(row) + n, value);
}

}  // namespace

void launch_generic(Context& context, const LinearCall& call) {
  const long long rows = call.tokens * call.slots;
  const long long across = rows < 32768 ? rows : 32768;
  const Grid grid{dim3(to_unsigned(divide_up<long long>(call.outputs, kWarps)), to_unsigned(across),
                       to_unsigned(divide_up(rows, across))),
                  dim3(kWarp, kWarps)};
  with_activation(call.type,
                  [&]<class T>() { launch(context, linear_rows<T>, grid, call, context.fault()); });
}

}  // namespace sluice::backend::cuda::linear
