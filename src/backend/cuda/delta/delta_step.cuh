// What the kernels of delta_step share: the call, a channel of the convolution, the norm of q and k.
#pragma once

#include "backend/cuda/delta/decay_rate.cuh"
#include "backend/cuda/delta/state_rows.cuh"
#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/sequence_part.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::delta {

inline constexpr int kKeyWidth = 128;
inline constexpr int kPer = kKeyWidth / kWarp;
inline constexpr int kTaps = 4;
inline constexpr int kWarpRows = 16;  // of the state

struct StepCall {
  const void* qkv;
  const void* z;
  void* out;
  Parameter a;
  Parameter b;
  const float* taps;
  Parameter a_log;
  Parameter dt_bias;
  Parameter norm_weight;
  float* conv_state;
  float* state;
  long long qkv_stride;
  long long z_strides[2];  // token, head
  long long out_strides[2];
  long long a_stride;
  long long b_stride;
  long long conv_strides[2];   // slot, row
  long long state_strides[3];  // slot, head, row
  long long slots;
  DeviceSequences sequences;
  Fault* fault;
  int key_heads;
  int value_heads;
  int value_width;
  int head_blocks;  // blocks per value head, for one sequence
  float qk_eps;
  float eps;
  double per_row;  // 1 / value_width

  int ratio() const { return value_heads / key_heads; }
  int cluster() const { return ratio() * head_blocks; }
};

// One channel of the convolution: its taps and its last inputs.
struct Channel {
  float taps[kTaps];
  float window[kTaps - 1];

  __device__ __forceinline__ void load_taps(const StepCall& call, int channel) {
    load_vector(call.taps + channel * kTaps, taps);
  }
  __device__ __forceinline__ void load(const float* state, long long stride) {
#pragma unroll
    for (int r = 0; r < kTaps - 1; ++r) window[r] = state[r * stride];
  }
  __device__ __forceinline__ void store(float* state, long long stride) const {
#pragma unroll
    for (int r = 0; r < kTaps - 1; ++r) state[r * stride] = window[r];
  }
  // Adds taps in the order of causal_conv1d.
  __device__ __forceinline__ float take(float x) {
    float sum = window[0] * taps[0];
    sum = fmaf(window[1], taps[1], sum);
    sum = fmaf(window[2], taps[2], sum);
    sum = fmaf(x, taps[3], sum);
    window[0] = window[1];
    window[1] = window[2];
    window[2] = x;
    return silu(sum);
  }
};

// Scales a vector, distributed over the lanes, to length `length`.
__device__ __forceinline__ void normalize(float (&x)[kPer], float eps, float length) {
  constexpr float kDown = 0x1p-64f;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kPer; ++i) squares += x[i] * x[i];
  squares = warp_sum(squares);
  float factor = rsqrtf(squares + eps) * length;
  if (!(squares < 1e38f)) {
    squares = 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i) squares += x[i] * kDown * (x[i] * kDown);
    factor = rsqrtf(warp_sum(squares)) * kDown * length;
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) x[i] *= factor;
}

// The factor that normalises a value head's results, from the mean of their squares.
__device__ __forceinline__ float norm_factor(double mean, float eps) {
  return mean < 1e38 ? rsqrtf(static_cast<float>(mean) + eps)
                     : rsqrtf(static_cast<float>(mean * 0x1p-128)) * 0x1p-64f;
}

// For many sequences (delta_steps.cu): whether there are enough for this device, and the launch.
bool many_steps(const StepCall& call, const DeviceInfo& device);
void launch_steps(Context& context, const StepCall& call, ops::DType type, bool early);

}  // namespace sluice::backend::cuda::delta
