// s = sigmoid(logits); a group's score is the sum of its two largest s+bias; the k largest s+bias of the top
// groups, ties to the lower index; weights are s, divided by (sum + 1e-20) if normalize, times scale.
//
// One warp per token. Scores are in double, so that close ones are ordered exactly; a token has only few. A
// token with a NaN logit is reported and skipped. Bytes: logits and bias once, k pairs written.
#include "sluice/ops/routing/route_sigmoid.h"

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/routing/choose.cuh"
#include "backend/cuda/routing/router.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

namespace {

struct SigmoidCall : RouterCall {
  Parameter bias;
  int groups;
  int top_groups;
  double scale;

  SigmoidCall(const ops::RouteSigmoid& op, const RouterMemory& memory, Fault* fault)
      : RouterCall(op, memory, fault),
        bias{op.bias.data, op.bias.dtype},
        groups(to_int(op.groups)),
        top_groups(to_int(op.top_groups)),
        scale(op.scale) {}
  __device__ __forceinline__ int group_size() const { return expert_count / groups; }
};

// A token's memory: a key per expert, a score and a mark per group.
struct Scores {
  Key64* keys;
  double* groups;
  int* chosen;

  __device__ Scores(std::byte* memory, const SigmoidCall& call)
      : keys(reinterpret_cast<Key64*>(memory)),
        groups(reinterpret_cast<double*>(keys + call.expert_count)),
        chosen(reinterpret_cast<int*>(groups + call.groups)) {}
  static long long bytes(long long expert_count, long long groups) {
    return static_cast<long long>(sizeof(Key64)) * expert_count +
           static_cast<long long>(sizeof(double) + sizeof(int)) * groups;
  }
};

__device__ __forceinline__ double exact_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
__device__ __forceinline__ double score_of(Key64 key) {
  const Key64 bits = key >> 63 != 0 ? key & 0x7fffffffffffffffull : ~key;
  return __longlong_as_double(static_cast<long long>(bits));
}

struct TwoLargest {
  double first;
  double second;
  __device__ void add(const TwoLargest& other) {
    second = fmax(fmin(first, other.first), fmax(second, other.second));
    first = fmax(first, other.first);
  }
};

// A power of two of lanes per group.
__device__ void score_groups(const SigmoidCall& call, const Scores& scores, int lane) {
  const double lowest = -__longlong_as_double(0x7ff0000000000000ll);
  int lanes = 1;
  while (2 * lanes * call.groups <= kWarp) lanes *= 2;
  const int size = call.group_size();
  for (int base = 0; base < call.groups; base += kWarp / lanes) {
    const int group = base + lane / lanes;
    TwoLargest best{lowest, lowest};
    if (group < call.groups)
      for (int e = lane % lanes; e < size; e += lanes)
        best.add({score_of(scores.keys[group * size + e]), lowest});
    for (int step = lanes / 2; step > 0; step /= 2) {
      const double first = __shfl_xor_sync(0xffffffffu, best.first, step);
      const double second = __shfl_xor_sync(0xffffffffu, best.second, step);
      best.add({first, second});
    }
    if (group < call.groups && lane % lanes == 0)
      scores.groups[group] = size > 1 ? best.first + best.second : best.first;
  }
  __syncwarp();
}

// Excludes the experts of all but the best groups.
__device__ void drop_groups(const SigmoidCall& call, const Scores& scores, int lane) {
  for (int g = lane; g < call.groups; g += kWarp) {
    int better = 0;
    for (int other = 0; other < call.groups; ++other)
      better +=
          scores.groups[other] > scores.groups[g] || (scores.groups[other] == scores.groups[g] && other < g);
    scores.chosen[g] = better < call.top_groups;
  }
  __syncwarp();
  const int size = call.group_size();
  for (int e = lane; e < call.expert_count; e += kWarp)
    if (scores.chosen[e / size] == 0) scores.keys[e] = 0;
}

template <class T>
__global__ void route_sigmoid(SigmoidCall call) {
  extern __shared__ __align__(16) std::byte shared[];
  const int lane = threadIdx.x % kWarp;
  const long long token = call.begin();
  if (token >= call.tokens) return;
  const Scores scores(call.memory.of(token, shared), call);
  const auto score = [&](int e, float logit) {
    return key_of(exact_sigmoid(logit) + static_cast<double>(call.bias[e]));
  };
  if (!call.read_keys<T>(token, scores.keys, score)) return;
  const T* logits = call.logits_of<T>(token);
  if (call.top_groups < call.groups) {
    __syncwarp();
    score_groups(call, scores, lane);
    drop_groups(call, scores, lane);
  }

  Chooser<Key64> chooser(scores.keys, call.expert_count);
  int* experts = call.experts_of(token);
  float* weights = call.weights_of(token);
  for (int j = 0; j < call.k; ++j) {
    const int chosen = chooser.take().index;
    if (j % kWarp == lane) experts[j] = chosen;
  }
  // The slots that this lane writes, and the sum over all slots.
  double sum = 0;
  if (call.normalize) {
    for (int j = lane; j < call.k; j += kWarp) sum += exact_sigmoid(to_float(logits[experts[j]]));
    for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  }
  const double factor = call.normalize ? call.scale / (sum + 1e-20) : call.scale;
  for (int j = lane; j < call.k; j += kWarp)
    weights[j] = static_cast<float>(exact_sigmoid(to_float(logits[experts[j]])) * factor);
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::RouteSigmoid& op) {
  using namespace routing;
  const RouterGrid router(context, op.logits.dim(0), Scores::bytes(op.logits.dim(1), op.groups));
  const SigmoidCall call(op, router.memory, context.fault());
  with_activation(op.logits.dtype, [&]<class T>() { launch(context, route_sigmoid<T>, router.grid, call); });
}

}  // namespace sluice::backend::cuda
