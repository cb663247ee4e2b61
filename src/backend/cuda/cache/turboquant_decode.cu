// out = level[code] * norm/sqrt(D), then the inverse rotation unless `rotated`.
//
// One warp per vector. Bytes: D*bits/8 + 4 read, the vector written. F32, rounded once at the end.
#include "sluice/ops/cache/turboquant_decode.h"

#include "backend/cuda/cache/codebook.cuh"
#include "backend/cuda/cache/rotation.cuh"
#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::cache {

namespace {

constexpr int kWarps = 4;

struct DecodeCall {
  const unsigned char* codes;
  const float* norms;
  const unsigned char* signs;
  void* out;
  long long code_head_stride;
  long long code_token_stride;
  long long norm_head_stride;
  long long out_token_stride;
  long long out_head_stride;
  long long heads;
  long long vectors;
  int bits;
  bool rotated;
};

template <class T, int kCount>
__global__ void decode_kernel(DecodeCall call, Levels levels) {
  wait_for_inputs();
  allow_successor();
  const long long vector = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (vector >= call.vectors) return;
  const int lane = to_int(threadIdx.x) % kWarp;
  const long long token = vector / call.heads;
  const long long head = vector % call.heads;
  const unsigned char* codes = call.codes + head * call.code_head_stride + token * call.code_token_stride;
  const float root = rsqrtf(static_cast<float>(kCount * kWarp));
  const float factor = call.norms[head * call.norm_head_stride + token] * root;
  float x[kCount];
#pragma unroll
  for (int r = 0; r < kCount; ++r)
    x[r] = levels.values[read_code(codes, lane + r * kWarp, call.bits)] * factor;
  if (!call.rotated) {
    transform(x);
#pragma unroll
    for (int r = 0; r < kCount; ++r) x[r] *= root * static_cast<float>(sign_of(call.signs, lane + r * kWarp));
  }
  T* out = static_cast<T*>(call.out) + token * call.out_token_stride + head * call.out_head_stride;
#pragma unroll
  for (int r = 0; r < kCount; ++r) out[lane + r * kWarp] = from_float<T>(x[r]);
}

}  // namespace

}  // namespace sluice::backend::cuda::cache

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::TurboquantDecode& op) {
  using namespace cache;
  const DecodeCall call{static_cast<const unsigned char*>(op.codes.data),
                        static_cast<const float*>(op.norms.data),
                        static_cast<const unsigned char*>(op.signs.data),
                        op.out.data,
                        op.codes.strides[0],
                        op.codes.strides[1],
                        op.norms.strides[0],
                        op.out.strides[0],
                        op.out.strides[1],
                        op.out.dim(1),
                        op.out.dim(0) * op.out.dim(1),
                        to_int(op.bits),
                        op.rotated};
  const auto blocks = to_unsigned(divide_up<long long>(call.vectors, kWarps));
  const Levels levels(op.bits);
  with_rotation_width(op.out.dim(2), [&]<int kCount>() {
    with_activation(op.out.dtype, [&]<class T>() {
      launch(context, decode_kernel<T, kCount>, {dim3(blocks), dim3(kWarps * kWarp)}, call, levels);
    });
  });
}

}  // namespace sluice::backend::cuda
