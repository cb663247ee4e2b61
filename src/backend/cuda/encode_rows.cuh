// New vectors into the slots of packed caches, one warp a vector.
#pragma once

#include "backend/cuda/encode_vector.cuh"
#include "backend/cuda/launch.h"
#include "backend/cuda/sequences.cuh"

namespace sluice::backend::cuda {

inline constexpr int kEncodeWarps = 4;

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
  bool wraps;  // rows past the last slot go to the first ones; else they are refused
  long long pool;
  Fault* fault;
};

template <class T, int kCount, bool kNumbers>
__global__ void ring_append(RingCall call, Encoder encoder) {
  __shared__ unsigned char scratch[kEncodeWarps][kCount * kWarp];
  wait_for_inputs();
  allow_successor();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const long long vector = static_cast<long long>(blockIdx.x) * kEncodeWarps + warp;
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
  if (!call.wraps && start + (token - begin) >= call.ring) {
    if (threadIdx.x % kWarp == 0)
      report(call.fault, FaultKind::cache_row, start + (token - begin), call.ring);
    return;
  }
  const long long row = (start % call.ring + (token - begin)) % call.ring;
  const RingSide& side = call.side;
  encode_vector<T, kCount, kNumbers>(
      encoder, static_cast<const T*>(side.x) + token * side.x_token_stride + head * side.x_head_stride,
      call.signs, scratch[warp],
      side.codes + slot * side.code_pool_stride + head * side.code_head_stride + row * side.code_slot_stride,
      side.norms + slot * side.norm_pool_stride + head * side.norm_head_stride + row);
}

// x [T,H,D], or [T,D] for one head; codes and norms with or without a dimension of heads likewise.
inline RingSide ring_side(const ops::ConstView& x, const ops::View& codes, const ops::View& norms,
                          bool pooled) {
  const int head = pooled ? 1 : 0;
  const bool heads = x.rank() == 3;
  return {x.data,
          static_cast<unsigned char*>(codes.data),
          static_cast<float*>(norms.data),
          x.strides[0],
          heads ? x.strides[1] : 0,
          pool_stride(codes, pooled),
          heads ? codes.strides[head] : 0,
          codes.strides[heads ? head + 1 : head],
          pool_stride(norms, pooled),
          heads ? norms.strides[head] : 0};
}

// kNumbers: rows of 16 bits may be asked for.
template <bool kNumbers, class Op>
void encode_rows(Context& context, const Op& op, const ops::ConstView& x, const ops::View& codes,
                 const ops::View& norms, std::int64_t bits, bool wraps) {
  const bool pooled = op.seq_starts.present();
  const int heads = x.rank() == 3 ? static_cast<int>(x.dim(1)) : 1;
  const RingCall call{ring_side(x, codes, norms, pooled),
                      DeviceSequences(op, x.dim(0)),
                      SequenceNumber(op.start),
                      static_cast<const unsigned char*>(op.signs.data),
                      heads,
                      codes.dim(codes.rank() - 2),
                      wraps,
                      pooled ? codes.dim(0) : 1,
                      context.fault()};
  const Encoder encoder{Bounds(bits), Levels(bits), static_cast<int>(bits),
                        op.norm == ops::TurboquantNorm::matched};
  const auto blocks = static_cast<unsigned>(divide_up<long long>(x.dim(0) * heads, kEncodeWarps));
  with_rotation_width(x.shape.back(), [&]<int kCount>() {
    with_activation(x.dtype, [&]<class T>() {
      const Grid grid{dim3(blocks), dim3(kEncodeWarps * kWarp)};
      if (kNumbers && bits == 16)
        launch(context, ring_append<T, kCount, kNumbers>, grid, call, encoder);
      else
        launch(context, ring_append<T, kCount, false>, grid, call, encoder);
    });
  });
}

}  // namespace sluice::backend::cuda
