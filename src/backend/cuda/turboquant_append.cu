// Token i of a sequence is encoded into slot (start+i) mod S of its ring.
//
// One warp a vector; keys and values are two rows of the grid. Of tokens that fall on the same slot only the
// last is written. Bytes: k and v once, D*bits/8 + 4 a vector out.
#include "sluice/ops/turboquant_append.h"

#include "backend/cuda/encode_vector.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/sequences.cuh"

namespace sluice::backend::cuda {

namespace {

constexpr int kWarps = 4;

struct RingSide {
  const void* x;
  unsigned char* codes;
  float* norms;
  long long x_token_stride;
  long long x_head_stride;
  long long code_pool_stride;
  long long code_head_stride;
  long long code_slot_stride;
  long long norm_pool_stride;
  long long norm_head_stride;
};

struct RingCall {
  RingSide side;
  DeviceSequences sequences;
  SequenceNumber start;
  const unsigned char* signs;
  int heads;
  long long ring;
  long long pool;
  Fault* fault;
};

template <class T, int kCount>
__global__ void ring_append(RingCall call, Encoder encoder) {
  __shared__ unsigned char scratch[kWarps][kCount * kWarp];
  wait_for_inputs();
  allow_successor();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const long long vector = static_cast<long long>(blockIdx.x) * kWarps + warp;
  const int token = static_cast<int>(vector / call.heads);
  const int head = static_cast<int>(vector % call.heads);
  if (token >= call.sequences.tokens) return;
  const int b = call.sequences.of_token(token);
  const int begin = call.sequences.begin(b);
  const int end = call.sequences.end(b);
  const long long slot = call.sequences.slot(b);
  const long long start = call.start[b];
  if (token < begin || token >= end || token + call.ring < end) return;
  if (slot < 0 || slot >= call.pool || start < 0) {
    const bool bad_slot = slot < 0 || slot >= call.pool;
    if (threadIdx.x % kWarp == 0)
      report(call.fault, bad_slot ? FaultKind::pool_slot : FaultKind::cache_row, bad_slot ? slot : start,
             bad_slot ? call.pool : call.ring);
    return;
  }
  const long long row = (start % call.ring + (token - begin)) % call.ring;
  const RingSide& side = call.side;
  encode_vector<T, kCount>(
      encoder, static_cast<const T*>(side.x) + token * side.x_token_stride + head * side.x_head_stride,
      call.signs, scratch[warp],
      side.codes + slot * side.code_pool_stride + head * side.code_head_stride + row * side.code_slot_stride,
      side.norms + slot * side.norm_pool_stride + head * side.norm_head_stride + row);
}

RingSide ring_side(const ops::ConstView& x, const ops::View& codes, const ops::View& norms, bool pooled) {
  const int head = pooled ? 1 : 0;
  return {x.data,
          static_cast<unsigned char*>(codes.data),
          static_cast<float*>(norms.data),
          x.strides[0],
          x.strides[1],
          pool_stride(codes, pooled),
          codes.strides[head],
          codes.strides[head + 1],
          pool_stride(norms, pooled),
          norms.strides[head]};
}

void append_side(Context& context, const ops::TurboquantAppend& op, const ops::ConstView& x,
                 const ops::View& codes, const ops::View& norms, std::int64_t bits) {
  const bool pooled = op.seq_starts.present();
  const RingCall call{ring_side(x, codes, norms, pooled), DeviceSequences(op, x.dim(0)),
                      SequenceNumber(op.start),           static_cast<const unsigned char*>(op.signs.data),
                      static_cast<int>(x.dim(1)),         codes.dim(pooled ? 2 : 1),
                      pooled ? codes.dim(0) : 1,          context.fault()};
  const Encoder encoder{Bounds(bits), Levels(bits), static_cast<int>(bits),
                        op.norm == ops::TurboquantNorm::matched};
  const auto blocks = static_cast<unsigned>(divide_up<long long>(x.dim(0) * x.dim(1), kWarps));
  with_rotation_width(x.dim(2), [&]<int kCount>() {
    with_activation(x.dtype, [&]<class T>() {
      launch(context, ring_append<T, kCount>, {dim3(blocks), dim3(kWarps * kWarp)}, call, encoder);
    });
  });
}

}  // namespace

template <>
void run(Context& context, const ops::TurboquantAppend& op) {
  append_side(context, op, op.k, op.k_codes, op.k_norms, op.k_bits);
  append_side(context, op, op.v, op.v_codes, op.v_norms, op.v_bits);
}

}  // namespace sluice::backend::cuda
