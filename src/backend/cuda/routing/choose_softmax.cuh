// One warp chooses a token's experts by the softmax of their logits.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/routing/choose.cuh"
#include "backend/cuda/routing/router.cuh"

namespace sluice::backend::cuda::routing {

// A logit equal to the largest gives 1, even if both are infinite.
__device__ __forceinline__ float mass(float logit, float largest) {
  return logit == largest ? 1.0f : expf(logit - largest);
}

// The sum over all experts, for weights that are not normalised over the chosen ones.
template <class T>
__device__ __forceinline__ float whole_mass(const RouterCall& call, const T* logits, float largest) {
  float sum = 0;
  for (int e = threadIdx.x % kWarp; e < call.expert_count; e += kWarp)
    sum += mass(to_float(__ldcg(logits + e)), largest);
  return warp_sum(sum);
}

// For at most 32 * kHeld experts, of which up to 32 are chosen: lane j keeps choice j. Logits are loaded
// without the L1 cache, because other blocks of the same launch may have written them.
template <class T, int kHeld>
__device__ __forceinline__ void choose_held(const RouterCall& call, long long token) {
  const int lane = threadIdx.x % kWarp;
  const T* logits = call.logits_of<T>(token);
  float held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    held[i] = i * kWarp + lane < call.expert_count ? to_float(__ldcg(logits + i * kWarp + lane)) : -INFINITY;
  Key32 keys[kHeld];
  bool nan = false;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    nan |= held[i] != held[i];
    keys[i] = i * kWarp + lane < call.expert_count ? key_of(held[i]) : 0;
  }
  if (call.refuses(token, nan)) return;
  HeldChooser<Key32, kHeld> chooser(keys);
  Choice<Key32> mine{0, 0};
  float largest = 0;
  float sum = 0;
#pragma unroll 1
  for (int j = 0; j < call.k; ++j) {
    const Choice<Key32> choice = chooser.take();
    if (j == 0) largest = value_of(choice.key);
    sum += mass(value_of(choice.key), largest);
    if (j == lane) mine = choice;
  }
  if (!call.normalize) sum = whole_mass(call, call.logits_of<T>(token), largest);
  if (lane >= call.k) return;
  call.experts_of(token)[lane] = mine.index;
  call.weights_of(token)[lane] = mass(value_of(mine.key), largest) / sum;
}

}  // namespace sluice::backend::cuda::routing
