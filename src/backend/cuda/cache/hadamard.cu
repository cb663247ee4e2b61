// forward: out = H(signs * x)/sqrt(D); inverse: out = signs * (H x)/sqrt(D).
//
// One warp per row, with the row in registers: five stages between lanes, the others within a lane. Bytes: x
// and out once. F32, rounded once at the end; D = 2^n takes n additions per coordinate.
#include "sluice/ops/cache/hadamard.h"

#include "backend/cuda/cache/rotate_rows.h"
#include "backend/cuda/cache/rotation.cuh"
#include "backend/cuda/device/element.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

namespace {

constexpr int kRowsPerBlock = 4;

template <class In, class Out, int kCount>
__global__ void rotate_kernel(RotateCall call) {
  wait_for_inputs();
  allow_successor();
  const long long row = static_cast<long long>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (row >= call.x_rows.count) return;
  const In* from = static_cast<const In*>(call.x) + call.x_rows[row];
  Out* to = static_cast<Out*>(call.out) + call.out_rows[row];
  const float root = rsqrtf(static_cast<float>(kCount * kWarp));
  const int lane = threadIdx.x;
  float x[kCount];
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    const float value = to_float(from[lane + r * kWarp]) * root;
    x[r] = call.inverse ? value : value * static_cast<float>(sign_of(call.signs, lane + r * kWarp));
  }
  transform(x);
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    const int sign = call.inverse ? sign_of(call.signs, lane + r * kWarp) : 1;
    to[lane + r * kWarp] = from_float<Out>(x[r] * static_cast<float>(sign));
  }
}

}  // namespace

void rotate_rows(Context& context, const RotateCall& call, long long width, ops::DType x_type,
                 ops::DType out_type) {
  const auto blocks = to_unsigned(divide_up<long long>(call.x_rows.count, kRowsPerBlock));
  if (blocks == 0) return;
  with_rotation_width(width, [&]<int kCount>() {
    with_activation(x_type, [&]<class In>() {
      with_activation(out_type, [&]<class Out>() {
        launch(context, rotate_kernel<In, Out, kCount>, {dim3(blocks), dim3(kWarp, kRowsPerBlock)}, call);
      });
    });
  });
}

}  // namespace sluice::backend::cuda::cache

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Hadamard& op) {
  using namespace cache;
  const RotateCall call{op.x.data,
                        op.out.data,
                        RowOffsets(op.x),
                        RowOffsets(op.out),
                        static_cast<const unsigned char*>(op.signs.data),
                        op.inverse};
  rotate_rows(context, call, op.x.shape.back(), op.x.dtype, op.out.dtype);
}

}  // namespace sluice::backend::cuda
