// Softmax over all E experts, the k largest in falling order, optionally divided by their sum.
//
// One warp a token. Experts are chosen by their logits, so that no rounding of exp can reorder them; masses
// and sums are F32. A token with NaN among its logits is reported and left out. Bytes: logits once, k pairs
// out.
#include "sluice/ops/route_softmax.h"

#include "backend/cuda/choose.cuh"
#include "backend/cuda/element.cuh"
#include "backend/cuda/router.cuh"

namespace sluice::backend::cuda {

namespace {

struct SoftmaxCall {
  const void* logits;
  long long logit_stride;
  int* experts;
  long long expert_stride;
  float* weights;
  long long weight_stride;
  long long tokens;
  int expert_count;
  int k;
  bool normalize;
  RouterMemory memory;
  Fault* fault;
};

// Equal to the largest means 1, also where both are infinite.
__device__ __forceinline__ float mass(float logit, float largest) {
  return logit == largest ? 1.0f : expf(logit - largest);
}

template <class T>
__global__ void route_softmax(SoftmaxCall call) {
  extern __shared__ __align__(16) std::byte shared[];
  const int lane = threadIdx.x % kWarp;
  const long long token = static_cast<long long>(blockIdx.x) * call.memory.block_tokens + threadIdx.x / kWarp;
  wait_for_inputs();
  allow_successor();
  if (token >= call.tokens) return;
  const T* logits = static_cast<const T*>(call.logits) + token * call.logit_stride;
  auto* keys = reinterpret_cast<Key32*>(call.memory.of(token, shared));
  bool nan = false;
  for (int e = lane; e < call.expert_count; e += kWarp) {
    const float logit = to_float(logits[e]);
    nan |= logit != logit;
    keys[e] = key_of(logit);
  }
  if (__any_sync(0xffffffffu, nan)) {
    if (lane == 0) report(call.fault, FaultKind::router_logit, token, call.tokens);
    return;
  }

  Chooser<Key32> chooser(keys, call.expert_count);
  int* experts = call.experts + token * call.expert_stride;
  float* weights = call.weights + token * call.weight_stride;
  float largest = 0;
  float sum = 0;
  for (int j = 0; j < call.k; ++j) {
    const Choice<Key32> choice = chooser.take();
    const float logit = value_of(choice.key);
    if (j == 0) largest = logit;
    const float chosen = mass(logit, largest);
    sum += chosen;
    if (j % kWarp == lane) {
      experts[j] = choice.index;
      weights[j] = chosen;
    }
  }
  if (!call.normalize) {
    sum = 0;
    for (int e = lane; e < call.expert_count; e += kWarp) sum += mass(to_float(logits[e]), largest);
    sum = warp_sum(sum);
  }
  for (int j = lane; j < call.k; j += kWarp) weights[j] /= sum;
}

}  // namespace

template <>
void run(Context& context, const ops::RouteSoftmax& op) {
  const RouterGrid router(context, op.logits.dim(0),
                          op.logits.dim(1) * static_cast<long long>(sizeof(Key32)));
  const SoftmaxCall call{op.logits.data,
                         op.logits.strides[0],
                         static_cast<int*>(op.experts.data),
                         op.experts.strides[0],
                         static_cast<float*>(op.weights.data),
                         op.weights.strides[0],
                         op.logits.dim(0),
                         static_cast<int>(op.logits.dim(1)),
                         static_cast<int>(op.k),
                         op.normalize,
                         router.memory,
                         context.fault()};
  with_activation(op.logits.dtype, [&]<class T>() { launch(context, route_softmax<T>, router.grid, call); });
}

}  // namespace sluice::backend::cuda
