// g = -exp(A_log) * softplus(a + dt_bias), beta = sigmoid(b).
//
// One thread per element of [T,Hv]. Bytes: a, b, g and beta once. The relative error is below 2e-6 over the
// whole range.
#include "backend/cuda/delta/decay_rate.cuh"
#include "backend/cuda/device/element.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"
#include "sluice/ops/delta/delta_gates.h"

namespace sluice::backend::cuda::delta {

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

__global__ void delta_gates(GatesCall call) {
  wait_for_inputs();
  allow_successor();
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.count) return;
  const long long t = i / call.heads;
  const int h = to_int(i % call.heads);
  const float x = call.a[t * call.a_stride + h] + call.dt_bias[h];
  call.g[t * call.g_stride + h] = -decay_rate(call.a_log[h], x);
  call.beta[t * call.beta_stride + h] = 1.0f / (1.0f + expf(-call.b[t * call.b_stride + h]));
}

}  // namespace

}  // namespace sluice::backend::cuda::delta

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::DeltaGates& op) {
  using namespace delta;
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
                       to_int(op.a.dim(1))};
  const unsigned threads = 128;
  const auto blocks = to_unsigned(divide_up<long long>(call.count, threads));
  launch(context, delta_gates, {dim3(blocks), dim3(threads)}, call);
}

}  // namespace sluice::backend::cuda
