// out = x * rsqrt(mean(x^2) + eps) * weight over rows of D.
//
// One block a row, or one warp where rows are short (heads); the row is read twice, the second time from the
// cache. Bytes: x and out once. The order of a row's sum depends on D alone.
#include "backend/cuda/element.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/rows.cuh"
#include "backend/cuda/warp.cuh"
#include "sluice/ops/rms_norm.h"

namespace sluice::backend::cuda {

namespace {

struct NormCall {
  const void* x;
  void* out;
  RowOffsets x_rows;
  RowOffsets out_rows;
  Parameter weight;
  long long width;
  float eps;
};

template <class T>
__global__ void rms_norm_rows(NormCall call) {
  __shared__ float partial[32];
  wait_for_inputs();
  allow_successor();
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= call.x_rows.count) return;
  const T* x = static_cast<const T*>(call.x) + call.x_rows[row];
  T* out = static_cast<T*>(call.out) + call.out_rows[row];
  float squares = 0;
  for (long long i = threadIdx.x; i < call.width; i += blockDim.x) {
    const float value = to_float(x[i]);
    squares += value * value;
  }
  const float factor = rsqrtf(block_sum(squares, partial) / static_cast<float>(call.width) + call.eps);
  for (long long i = threadIdx.x; i < call.width; i += blockDim.x) {
    const float weight = call.weight.present() ? call.weight[i] : 1.0f;
    out[i] = from_float<T>(to_float(x[i]) * factor * weight);
  }
}

}  // namespace

template <>
void run(Context& context, const ops::RmsNorm& op) {
  const NormCall call{op.x.data,
                      op.out.data,
                      RowOffsets(op.x),
                      RowOffsets(op.out),
                      {op.weight.data, op.weight.dtype},
                      op.x.shape.back(),
                      static_cast<float>(op.eps)};
  // Short rows: several warps a block, a row each. Long rows: one block of many warps.
  const bool head = call.width <= 512;
  const unsigned threads = head ? kWarp : call.width >= 4096 ? 1024 : 512;
  const unsigned rows = head ? 8 : 1;
  const auto blocks = static_cast<unsigned>(divide_up<long long>(call.x_rows.count, rows));
  with_activation(op.x.dtype, [&]<class T>() {
    launch(context, rms_norm_rows<T>, {dim3(blocks), dim3(threads, rows)}, call);
  });
}

}  // namespace sluice::backend::cuda
