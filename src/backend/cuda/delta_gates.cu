// g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b).
//
// A thread an element of [T,Hv]. Bytes: a, b, g and beta once. Relative error below 2e-6 over the whole
// range.
#include "backend/cuda/element.cuh"
#include "backend/cuda/launch.h"
#include "sluice/ops/delta_gates.h"

namespace sluice::backend::cuda {

namespace {

struct GatesCall {
  Parameter a;
  Parameter b;
  Parameter a_log;
  Parameter dt_bias;
  float* g;
  float* beta;
  long long a_stride;
  long long b_stride;
  long long g_stride;
  long long beta_stride;
  long long count;
  int heads;
};

// exp(a_log) * softplus(x) where either factor alone may overflow or underflow: far below zero softplus is
// e^x, and there the exponents are added; elsewhere exp(a_log) is applied in two parts. Comparisons, not
// fminf: they let a NaN pass.
__device__ __forceinline__ float decay_rate(float a_log, float x) {
  const float limit = 80.0f;
  const bool far_below = x < -15.0f;
  const float exponent = far_below ? a_log + x : a_log;
  const float factor = far_below ? 1.0f : fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
  const float first = exponent > limit ? limit : exponent;
  const float rest = exponent > limit ? exponent - limit : 0.0f;
  return factor * expf(first) * expf(rest);
}

__global__ void delta_gates(GatesCall call) {
  wait_for_inputs();
  allow_successor();
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.count) return;
  const long long t = i / call.heads;
  const int h = static_cast<int>(i % call.heads);
  const float x = call.a[t * call.a_stride + h] + call.dt_bias[h];
  call.g[t * call.g_stride + h] = -decay_rate(call.a_log[h], x);
  call.beta[t * call.beta_stride + h] = 1.0f / (1.0f + expf(-call.b[t * call.b_stride + h]));
}

}  // namespace

template <>
void run(Context& context, const ops::DeltaGates& op) {
  const GatesCall call{{op.a.data, op.a.dtype},
                       {op.b.data, op.b.dtype},
                       {op.A_log.data, op.A_log.dtype},
                       {op.dt_bias.data, op.dt_bias.dtype},
                       static_cast<float*>(op.g.data),
                       static_cast<float*>(op.beta.data),
                       op.a.strides[0],
                       op.b.strides[0],
                       op.g.strides[0],
                       op.beta.strides[0],
                       op.a.elements(),
                       static_cast<int>(op.a.dim(1))};
  const unsigned threads = 128;
  const auto blocks = static_cast<unsigned>(divide_up<long long>(call.count, threads));
  launch(context, delta_gates, {dim3(blocks), dim3(threads)}, call);
}

}  // namespace sluice::backend::cuda
