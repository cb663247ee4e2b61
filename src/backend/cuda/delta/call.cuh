// The fields of delta_rule as its kernels use them.
#pragma once

#include "backend/cuda/delta/save_places.cuh"
#include "backend/cuda/device/vector_access.cuh"
#include "backend/cuda/runtime/sequence_part.cuh"
#include "base/integer_cast.h"
#include "sluice/ops/delta/delta_rule.h"

namespace sluice::backend::cuda::delta {

struct DeltaCall {
  Activation q;
  Activation k;
  Activation v;
  const float* g;
  const float* beta;
  float* state;
  void* out;               // of q's type
  long long q_strides[2];  // token, head
  long long k_strides[2];
  long long v_strides[2];
  long long out_strides[2];
  long long g_stride;  // token
  long long beta_stride;
  long long slot_stride;
  long long state_strides[2];  // head, row
  long long slots;
  DeviceSequences sequences;
  Fault* fault;
  int key_heads;
  int value_heads;
  int key_width;
  int value_width;
  bool tiled;
  SavePlaces saves;
  float* saved;
  long long saved_strides[3];  // save, head, row

  DeltaCall(Context& context, const ops::DeltaRule& op)
      : q{op.q.data, op.q.dtype},
        k{op.k.data, op.k.dtype},
        v{op.v.data, op.v.dtype},
        g(static_cast<const float*>(op.g.data)),
        beta(static_cast<const float*>(op.beta.data)),
        state(static_cast<float*>(op.state.data)),
        out(op.out.data),
        q_strides{op.q.strides[0], op.q.strides[1]},
        k_strides{op.k.strides[0], op.k.strides[1]},
        v_strides{op.v.strides[0], op.v.strides[1]},
        out_strides{op.out.strides[0], op.out.strides[1]},
        g_stride(op.g.strides[0]),
        beta_stride(op.beta.strides[0]),
        slot_stride(pool_stride(op.state, op.seq_starts.present())),
        state_strides{op.state.strides[op.state.rank() - 3], op.state.strides[op.state.rank() - 2]},
        slots(op.seq_starts.present() ? op.state.dim(0) : 1),
        sequences(op, op.q.dim(0)),
        fault(context.fault()),
        key_heads(to_int(op.k.dim(1))),
        value_heads(to_int(op.v.dim(1))),
        key_width(to_int(op.k.dim(2))),
        value_width(to_int(op.v.dim(2))),
        tiled(op.heads == ops::DeltaHeads::tiled),
        saves(op),
        saved(static_cast<float*>(op.saved.data)),
        saved_strides{} {
    for (int d = 0; op.saved.present() && d < 3; ++d) saved_strides[d] = op.saved.strides[d];
  }

  __device__ __forceinline__ int key_head(int head) const {
    return tiled ? head % key_heads : head / (value_heads / key_heads);
  }
  // Row `row` of a head's state.
  __device__ __forceinline__ float* state_row(const SequencePart& part, int head, int row) const {
    return state + part.slot * slot_stride + head * state_strides[0] + row * state_strides[1];
  }
  __device__ __forceinline__ float* saved_row(int save, int head, int row) const {
    return saved + save * saved_strides[0] + head * saved_strides[1] + row * saved_strides[2];
  }
  __device__ __forceinline__ void store_out(long long at, float value) const {
    if (q.type == ops::DType::f32)
      static_cast<float*>(out)[at] = value;
    else
      static_cast<Bf16*>(out)[at] = from_float<Bf16>(value);
  }
};

void launch_recurrent(Context& context, const ops::DeltaRule& op);
// The chunked form accepts only BF16, in rows aligned to 16 bytes.
bool chunked_supports(const Context& context, const ops::DeltaRule& op);
void launch_chunked(Context& context, const ops::DeltaRule& op);

}  // namespace sluice::backend::cuda::delta
