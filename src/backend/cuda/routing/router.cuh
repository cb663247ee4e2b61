// What the two routers share: the fields of their ops, and where a warp keeps its token's keys: in shared
// memory, or in scratch memory if a row is too long.
#pragma once

#include "backend/cuda/device/element.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/runtime/launch.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

struct RouterMemory {
  std::byte* scratch = nullptr;  // null: shared memory
  long long token_bytes = 0;
  int block_tokens = 1;

  // For kernels whose dynamic shared memory is `shared`: the token's part of the memory.
  __device__ __forceinline__ std::byte* of(long long token, std::byte* shared) const {
    return scratch != nullptr ? scratch + token * token_bytes : shared + threadIdx.x / kWarp * token_bytes;
  }
};

struct RouterGrid {
  RouterMemory memory;
  Grid grid;

  RouterGrid(Context& context, long long tokens, long long bytes) {
    constexpr long long kSharedBytes = 48 * 1024;
    constexpr int kMaxTokens = 4;
    memory.token_bytes = divide_up<long long>(bytes, 16) * 16;
    if (memory.token_bytes > kSharedBytes)
      memory.scratch = context.scratch(to_size(tokens * memory.token_bytes));
    else
      while (memory.block_tokens < kMaxTokens && memory.block_tokens < tokens &&
             2 * memory.block_tokens * memory.token_bytes <= kSharedBytes)
        memory.block_tokens *= 2;
    grid.blocks = dim3(to_unsigned(divide_up<long long>(tokens, memory.block_tokens)));
    grid.threads = dim3(to_unsigned(memory.block_tokens * kWarp));
    if (memory.scratch == nullptr) grid.shared_bytes = to_size(memory.block_tokens * memory.token_bytes);
  }
};

struct RouterCall {
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

  template <class Op>
  RouterCall(const Op& op, const RouterMemory& memory, Fault* fault)
      : logits(op.logits.data),
        logit_stride(op.logits.strides[0]),
        experts(static_cast<int*>(op.experts.data)),
        expert_stride(op.experts.strides[0]),
        weights(static_cast<float*>(op.weights.data)),
        weight_stride(op.weights.strides[0]),
        tokens(op.logits.dim(0)),
        expert_count(to_int(op.logits.dim(1))),
        k(to_int(op.k)),
        normalize(op.normalize),
        memory(memory),
        fault(fault) {}

  // How every router's kernel begins: returns the calling warp's token, whose logits may be read from here
  // on. It is past the last token in warps that have nothing to do.
  __device__ __forceinline__ long long begin() const {
    const long long token = static_cast<long long>(blockIdx.x) * memory.block_tokens + threadIdx.x / kWarp;
    wait_for_inputs();
    allow_successor();
    return token;
  }
  template <class T>
  __device__ __forceinline__ const T* logits_of(long long token) const {
    return static_cast<const T*>(logits) + token * logit_stride;
  }
  __device__ __forceinline__ int* experts_of(long long token) const {
    return experts + token * expert_stride;
  }
  __device__ __forceinline__ float* weights_of(long long token) const {
    return weights + token * weight_stride;
  }
  // keys[e] = key_of(e, logit) for all experts. False if a logit is NaN; the token is then reported.
  template <class T, class Key, class KeyOf>
  __device__ __forceinline__ bool read_keys(long long token, Key* keys, KeyOf&& key_of) const {
    const T* logits = logits_of<T>(token);
    bool nan = false;
    for (int e = threadIdx.x % kWarp; e < expert_count; e += kWarp) {
      const float logit = to_float(logits[e]);
      nan |= logit != logit;
      keys[e] = key_of(e, logit);
    }
    return !refuses(token, nan);
  }
  // Whether any lane of the warp found NaN; the token is then reported.
  __device__ __forceinline__ bool refuses(long long token, bool nan) const {
    if (!__any_sync(0xffffffffu, nan)) return false;
    if (threadIdx.x % kWarp == 0) report(fault, FaultKind::router_logit, token, tokens);
    return true;
  }
};

}  // namespace sluice::backend::cuda::routing
