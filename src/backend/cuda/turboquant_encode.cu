// codes = nearest levels of H(signs * x) * sqrt(D)/|x|, norms = |x| or |x| sqrt(D)/|levels|.
//
// One warp a vector. Bytes: x once, D*bits/8 + 4 out. Codes are exact, norms right to one rounding.
#include "sluice/ops/turboquant_encode.h"

#include "backend/cuda/encode_vector.cuh"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

namespace {

constexpr int kWarps = 4;

struct EncodeCall {
  const void* x;
  unsigned char* codes;
  float* norms;
  const unsigned char* signs;
  long long x_token_stride;
  long long x_head_stride;
  long long code_head_stride;
  long long code_token_stride;
  long long norm_head_stride;
  long long heads;
  long long vectors;
};

template <class T, int kCount>
__global__ void encode_kernel(EncodeCall call, Encoder encoder) {
  __shared__ unsigned char scratch[kWarps][kCount * kWarp];
  wait_for_inputs();
  allow_successor();
  const long long vector = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (vector >= call.vectors) return;
  const long long token = vector / call.heads;
  const long long head = vector % call.heads;
  encode_vector<T, kCount>(
      encoder, static_cast<const T*>(call.x) + token * call.x_token_stride + head * call.x_head_stride,
      call.signs, scratch[threadIdx.x / kWarp],
      call.codes + head * call.code_head_stride + token * call.code_token_stride,
      call.norms + head * call.norm_head_stride + token);
}

}  // namespace

template <>
void run(Context& context, const ops::TurboquantEncode& op) {
  const EncodeCall call{op.x.data,
                        static_cast<unsigned char*>(op.codes.data),
                        static_cast<float*>(op.norms.data),
                        static_cast<const unsigned char*>(op.signs.data),
                        op.x.strides[0],
                        op.x.strides[1],
                        op.codes.strides[0],
                        op.codes.strides[1],
                        op.norms.strides[0],
                        op.x.dim(1),
                        op.x.dim(0) * op.x.dim(1)};
  const Encoder encoder{Bounds(op.bits), Levels(op.bits), static_cast<int>(op.bits),
                        op.norm == ops::TurboquantNorm::matched};
  const auto blocks = static_cast<unsigned>(divide_up<long long>(call.vectors, kWarps));
  with_rotation_width(op.x.dim(2), [&]<int kCount>() {
    with_activation(op.x.dtype, [&]<class T>() {
      launch(context, encode_kernel<T, kCount>, {dim3(blocks), dim3(kWarps * kWarp)}, call, encoder);
    });
  });
}

}  // namespace sluice::backend::cuda
