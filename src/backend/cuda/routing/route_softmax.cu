// Softmax over all E experts, the k largest in descending order, optionally divided by their sum.
//
// One warp per token. Experts are chosen by their logits, so rounding of exp cannot reorder them;
// exponentials and sums are F32. A token with a NaN logit is reported and skipped. Bytes: logits once, k
// pairs written. Up to 512 experts are kept in registers, loaded all at once.
#include "sluice/ops/routing/route_softmax.h"

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/routing/choose_softmax.cuh"

namespace sluice::backend::cuda::routing {

namespace {

template <class T>
__global__ void route_softmax(RouterCall call) {
  extern __shared__ __align__(16) std::byte shared[];
  const int lane = threadIdx.x % kWarp;
  const long long token = call.begin();
  if (token >= call.tokens) return;
  auto* keys = reinterpret_cast<Key32*>(call.memory.of(token, shared));
  if (!call.read_keys<T>(token, keys, [](int, float logit) { return key_of(logit); })) return;

  Chooser<Key32> chooser(keys, call.expert_count);
  int* experts = call.experts_of(token);
  float* weights = call.weights_of(token);
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
  if (!call.normalize) sum = whole_mass(call, call.logits_of<T>(token), largest);
  for (int j = lane; j < call.k; j += kWarp) weights[j] /= sum;
}

template <class T, int kHeld>
__global__ void __launch_bounds__(4 * kWarp) route_softmax_held(RouterCall call) {
  const long long token = call.begin();
  if (token < call.tokens) choose_held<T, kHeld>(call, token);
}

template <class T>
void launch_router(Context& context, const Grid& grid, const RouterCall& call) {
  if (call.k > kWarp || call.expert_count > 16 * kWarp) return launch(context, route_softmax<T>, grid, call);
  const Grid held{grid.blocks, grid.threads};
  launch(context, call.expert_count <= 8 * kWarp ? route_softmax_held<T, 8> : route_softmax_held<T, 16>, held,
         call);
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::RouteSoftmax& op) {
  using namespace routing;
  const RouterGrid router(context, op.logits.dim(0),
                          op.logits.dim(1) * static_cast<long long>(sizeof(Key32)));
  const RouterCall call(op, router.memory, context.fault());
  with_activation(op.logits.dtype, [&]<class T>() { launch_router<T>(context, router.grid, call); });
}

}  // namespace sluice::backend::cuda
